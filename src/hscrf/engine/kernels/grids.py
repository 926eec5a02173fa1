"""Arrays as kernels see them: an address and a shape.

Numba's own arrays carry seven numbers and more, all of them passed by value through every call, and may be indexed from
their end. Those of ``layout`` lie in memory row by row and are indexed from their beginning only, so here a part gets
what it reads and no more: a kernel is half as long before it is optimised. With ``NUMBA_DISABLE_JIT=1`` they are those
of NumPy.

A truth value beside them belongs to the type: a kernel is compiled for it, without what it never does. It is True or
None, see ``flag``: Numba takes a tuple that differs from an earlier one in False alone to be of the same type.
"""

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils, imputils, typing
from numba.core.typing import templates

HEADER = object.__basicsize__  # of any object; NumPy puts address, dimensions and shape of an array after it
WORD = ir.IntType(64)
Attributes: Any = templates.AttributeTemplate


class Grid(types.Type):
    """An array of numbers that lies in memory row by row."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim
        super().__init__(name=f"Grid({dtype}, {ndim})")


@extending.register_model(Grid)
class GridModel(extending.models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        members = [("data", types.CPointer(kind.dtype)), *((f"n{k}", types.intp) for k in range(kind.ndim))]
        super().__init__(manager, kind, members)


class Fields(types.Type):
    """A named tuple of grids and numbers, passed on as the address of them all."""

    def __init__(self, name: str, kinds: dict[str, Any]) -> None:
        self.kinds = kinds
        super().__init__(name=f"{name}({', '.join(map(str, kinds.values()))})")


@extending.register_model(Fields)
class FieldsModel(extending.models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        members = [manager.lookup(member).get_value_type() for member in kind.kinds.values()]
        super().__init__(manager, kind, ir.LiteralStructType(members).as_pointer())


def seen_as_grids(fields: Any) -> Any:
    """Let kernels see the arrays of a class of named tuples as grids."""

    @extending.typeof_impl.register(fields)
    def kind_of_tuple(given: Any, context: Any) -> Any:
        kinds = {name: kind_of(name, getattr(given, name), context) for name in fields._fields}
        return Fields(fields.__name__, kinds)

    def kind_of(name: str, item: Any, context: Any) -> Any:
        kind = extending.typeof_impl(item, context)
        if item is True or item is None:
            return types.literal(item is True)
        if not isinstance(item, np.ndarray):
            return kind
        if kind.layout != "C":
            raise ValueError(f"{fields.__name__}.{name} has strides {item.strides}: it does not lie row by row")
        return Grid(kind.dtype, kind.ndim)

    return fields


def flag(truth: bool) -> bool | None:
    """A truth value as kernels are told it."""
    return True if truth else None


def kept_apart(builder: Any, access: Any, name: str) -> Any:
    """Tell LLVM that fields and numbers of grids are different memory: a number that is written changes no field."""
    add, number = builder.module.add_metadata, ir.Constant(WORD, 0)
    root = add([ir.MetaDataString(builder.module, "kernels")])
    kind = add([ir.MetaDataString(builder.module, name), root, number])
    access.set_metadata("tbaa", add([kind, kind, number]))
    return access


@extending.unbox(Fields)
def unbox_fields(kind: Any, item: Any, c: Any) -> Any:
    """Put all fields next to each other for as long as the kernel runs."""
    place = cgutils.alloca_once(c.builder, c.context.get_value_type(kind).pointee)
    for k, member in enumerate(kind.kinds.values()):
        value = c.unbox(member, c.pyapi.tuple_getitem(item, k)).value
        kept_apart(c.builder, c.builder.store(value, cgutils.gep_inbounds(c.builder, place, 0, k)), "field")
    return extending.NativeValue(place)


@templates.infer_getattr
class FieldsAttributes(Attributes):
    key = Fields

    def generic_resolve(self, typ: Any, attr: str) -> Any:
        return typ.kinds.get(attr)


@imputils.lower_getattr_generic(Fields)
def lower_field(context: Any, builder: Any, kind: Any, place: Any, name: str) -> Any:
    k = list(kind.kinds).index(name)

    def read(*where: int) -> Any:
        return kept_apart(builder, builder.load(cgutils.gep_inbounds(builder, place, 0, k, *where)), "field")

    member = kind.kinds[name]
    if isinstance(member, types.BooleanLiteral):
        return ir.Constant(ir.IntType(1), int(member.literal_value))
    if not isinstance(member, Grid):
        return read()
    grid = cgutils.create_struct_proxy(member)(context, builder)
    grid.data = read(0)
    for axis in range(member.ndim):
        setattr(grid, f"n{axis}", read(1 + axis))
    return grid._getvalue()


@extending.unbox(Grid)
def unbox_grid(kind: Any, item: Any, c: Any) -> Any:
    """Read address and shape where NumPy keeps them; the dispatcher has looked at the types."""
    grid = cgutils.create_struct_proxy(kind)(c.context, c.builder)
    words = c.builder.bitcast(item, WORD.as_pointer())
    first = HEADER // 8

    def read(base: Any, k: int) -> Any:
        return c.builder.load(c.builder.gep(base, [ir.Constant(WORD, k)]))

    grid.data = c.builder.inttoptr(read(words, first), grid.data.type)
    shape = c.builder.inttoptr(read(words, first + 2), WORD.as_pointer())
    for k in range(kind.ndim):
        setattr(grid, f"n{k}", read(shape, k))
    return extending.NativeValue(grid._getvalue())


def part_of(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    """A member of a grid or of one of Numba's arrays."""
    return context.data_model_manager[kind].get(builder, value, name)


@templates.infer_getattr
class GridAttributes(templates.AttributeTemplate):
    key = Grid

    def resolve_shape(self, kind: Any) -> Any:
        return types.UniTuple(types.intp, kind.ndim)

    def resolve_size(self, _kind: Any) -> Any:
        return types.intp


lower: Any = imputils.lower_builtin


@imputils.lower_getattr(Grid, "shape")
def lower_shape(context: Any, builder: Any, kind: Any, grid: Any) -> Any:
    numbers = [part_of(context, builder, kind, grid, f"n{k}") for k in range(kind.ndim)]
    return context.make_tuple(builder, types.UniTuple(types.intp, kind.ndim), numbers)


@imputils.lower_getattr(Grid, "size")
def lower_size(context: Any, builder: Any, kind: Any, grid: Any) -> Any:
    size = part_of(context, builder, kind, grid, "n0")
    for k in range(1, kind.ndim):
        size = builder.mul(size, part_of(context, builder, kind, grid, f"n{k}"), flags=["nsw"])
    return size


def fits(kind: Any, index: Any) -> bool:
    """Is this an index of one number of a grid."""
    numbers: Any = index if isinstance(index, types.BaseTuple) else (index,)
    return len(numbers) == kind.ndim and all(isinstance(number, types.Integer) for number in numbers)


@templates.infer_global(operator.getitem)
class GetNumber(templates.AbstractTemplate):
    def generic(self, args: Any, _kws: Any) -> Any:
        grid, index = args
        return typing.signature(grid.dtype, grid, index) if isinstance(grid, Grid) and fits(grid, index) else None


@templates.infer_global(operator.setitem)
class SetNumber(templates.AbstractTemplate):
    def generic(self, args: Any, _kws: Any) -> Any:
        grid, index, _ = args
        fitting = isinstance(grid, Grid) and fits(grid, index)
        return typing.signature(types.none, grid, index, grid.dtype) if fitting else None


def address(context: Any, builder: Any, kinds: Any, grid: Any, index: Any) -> Any:
    """Where the number at an index lies."""
    kind, kind_of_index = kinds
    numbers, kinds_of_numbers = [index], (kind_of_index,)
    if isinstance(kind_of_index, types.BaseTuple):
        numbers, kinds_of_numbers = cgutils.unpack_tuple(builder, index), tuple(kinds[1])
    flat = None
    for k, (number, of) in enumerate(zip(numbers, kinds_of_numbers, strict=True)):
        step = context.cast(builder, number, of, types.intp)
        if flat is not None:
            flat = builder.mul(flat, part_of(context, builder, kind, grid, f"n{k}"), flags=["nsw"])
            step = builder.add(flat, step, flags=["nsw"])
        flat = step
    return builder.gep(part_of(context, builder, kind, grid, "data"), [flat], inbounds=True)


@lower(operator.getitem, Grid, types.Integer)
@lower(operator.getitem, Grid, types.BaseTuple)
def get_number(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    model = context.data_model_manager[signature.return_type]
    number = kept_apart(builder, builder.load(address(context, builder, signature.args, *given)), "number")
    return model.from_data(builder, number)


@lower(operator.setitem, Grid, types.Integer, types.Any)
@lower(operator.setitem, Grid, types.BaseTuple, types.Any)
def set_number(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    *where, value = given
    number = context.data_model_manager[signature.args[2]].as_data(builder, value)
    kept_apart(builder, builder.store(number, address(context, builder, signature.args[:2], *where)), "number")
    return context.get_dummy_value()
