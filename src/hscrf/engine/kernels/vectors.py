"""The lanes as vector instructions of LLVM: ``lanes`` tells what each of them does and when they are used."""

from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import errors

from hscrf.engine.kernels.grids import Grid, kept_apart, part_of

intrinsic: Any = extending.intrinsic  # what it makes takes no first argument, which a checker cannot know
VECTOR = ir.VectorType(ir.DoubleType(), 4)
PICKED = ir.VectorType(ir.IntType(32), 4)
FUSED = ("contract",)  # a product and a sum may become one instruction


class Four(types.Type):
    """Numba's name for four floats in a register."""

    def __init__(self) -> None:
        super().__init__(name="Four")


@extending.register_model(Four)
class FourModel(extending.models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


four = Four()


def _refuse_views(array: Any) -> None:
    """Flat memory is that of whole rows: an array with gaps between them would be misread."""
    if not isinstance(array, Grid) and array.layout != "C":
        raise errors.TypingError(f"{array} does not lie in memory row by row")


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    data = part_of(context, builder, kind, array, "data")
    return builder.bitcast(builder.gep(data, [index]), VECTOR.as_pointer())


@intrinsic
def load(_typing: Any, array: Any, index: Any) -> Any:
    """The four numbers from an index on."""
    _refuse_views(array)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return kept_apart(
            builder, builder.load(_address(context, builder, signature.args[0], *given), align=8), "number"
        )

    return four(array, types.uint64), generate


@intrinsic
def store(_typing: Any, value: Any, array: Any, index: Any) -> Any:
    """Write four numbers from an index on."""
    _refuse_views(array)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        target = _address(context, builder, signature.args[1], *given[1:])
        kept_apart(builder, builder.store(given[0], target, align=8), "number")
        return context.get_dummy_value()

    return types.void(four, array, types.uint64), generate


@intrinsic
def spread(_typing: Any, value: Any) -> Any:
    """The same number four times."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        none = ir.Constant(VECTOR, ir.Undefined)
        first = builder.insert_element(none, given[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, none, ir.Constant(PICKED, [0, 0, 0, 0]))

    return four(types.float64), generate


@intrinsic
def add(_typing: Any, a: Any, b: Any) -> Any:
    """a + b."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        return builder.fadd(*given, flags=FUSED)

    return four(four, four), generate


@intrinsic
def multiply(_typing: Any, a: Any, b: Any) -> Any:
    """a * b."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        return builder.fmul(*given, flags=FUSED)

    return four(four, four), generate


@intrinsic
def multiply_add(_typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        return builder.fadd(builder.fmul(*given[:2], flags=FUSED), given[2], flags=FUSED)

    return four(four, four, four), generate


@intrinsic
def multiply_add_at_once(_typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, in one instruction where there is one, also if others need the product."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
        return builder.call(builder.module.declare_intrinsic("llvm.fmuladd.v4f64", (), kind), given)

    return four(four, four, four), generate


@intrinsic
def quotient(_typing: Any, a: Any, b: Any) -> Any:
    """a / b."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        return builder.fdiv(*given)

    return four(four, four), generate


@intrinsic
def higher(_typing: Any, a: Any, b: Any) -> Any:
    """The higher of a and b."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *given), *given)

    return four(four, four), generate


@intrinsic
def lower_above(_typing: Any, a: Any, b: Any, bound: Any) -> Any:
    """b where it is above the bound and lower than a, else a."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        a, b, bound = given
        both = builder.and_(builder.fcmp_ordered(">", b, bound), builder.fcmp_ordered("<", b, a))
        return builder.select(both, b, a)

    return four(four, four, four), generate


@intrinsic
def where_above(_typing: Any, a: Any, bound: Any, b: Any, c: Any) -> Any:
    """b where a is above the bound, else c."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        a, bound, b, c = given
        return builder.select(builder.fcmp_ordered(">", a, bound), b, c)

    return four(four, four, four, four), generate


@intrinsic
def larger(_typing: Any, a: Any, b: Any) -> Any:
    """The larger of two numbers. Numba has ``max``, but compiles it anew wherever it is used, and so ``min``."""
    return _picked(">", a, b)


@intrinsic
def smaller(_typing: Any, a: Any, b: Any) -> Any:
    """The smaller of two numbers."""
    return _picked("<", a, b)


def _picked(order: str, a: Any, b: Any) -> Any:
    """The first of two numbers if they are in this order, else the second."""
    kind: Any = types.int64
    if isinstance(a, types.Float):
        kind = types.float64
    elif a == b == types.uint64:
        kind = types.uint64

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        compare = {types.float64: builder.fcmp_ordered, types.uint64: builder.icmp_unsigned}
        return builder.select(compare.get(kind, builder.icmp_signed)(order, *given), *given)

    return kind(kind, kind), generate


@intrinsic
def place(_typing: Any, table: Any, row: Any, column: Any) -> Any:
    """Index of table[row, column] in flat memory."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        shape = part_of(context, builder, signature.args[0], given[0], "n1" if isinstance(table, Grid) else "shape")
        columns = shape if isinstance(table, Grid) else builder.extract_value(shape, 1)
        return builder.add(builder.mul(given[1], columns), given[2])

    return types.uint64(table, types.uint64, types.uint64), generate


def _lanes(builder: Any, value: Any) -> list[Any]:
    return [builder.extract_element(value, ir.Constant(ir.IntType(32), k)) for k in range(4)]


@intrinsic
def lanes(_typing: Any, value: Any) -> Any:
    """The four numbers as a tuple."""
    result = types.UniTuple(types.float64, 4)

    def generate(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        return context.make_tuple(builder, result, _lanes(builder, given[0]))

    return result(four), generate


@intrinsic
def pack(_typing: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Four numbers as one vector."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        vector = ir.Constant(VECTOR, ir.Undefined)
        for k, number in enumerate(given):
            vector = builder.insert_element(vector, number, ir.Constant(ir.IntType(32), k))
        return vector

    return four(*[types.float64] * 4), generate


@intrinsic
def lane_sum(_typing: Any, value: Any) -> Any:
    """The sum of the four."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        a, b, c, d = _lanes(builder, given[0])
        return builder.fadd(builder.fadd(a, c), builder.fadd(b, d))

    return types.float64(four), generate


@intrinsic
def lane_max(_typing: Any, value: Any) -> Any:
    """The highest of the four."""
    return _best_lane(">")


@intrinsic
def lane_min(_typing: Any, value: Any) -> Any:
    """The lowest of the four."""
    return _best_lane("<")


def _best_lane(order: str) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        best, *others = _lanes(builder, given[0])
        for other in others:
            best = builder.select(builder.fcmp_ordered(order, best, other), best, other)
        return best

    return types.float64(four), generate


@intrinsic
def lane_sums(_typing: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """The sum of a, that of b, of c and of d."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        def sum_up(x: Any, y: Any, left: list[int], right: list[int]) -> Any:
            parts = (builder.shuffle_vector(x, y, ir.Constant(PICKED, picked)) for picked in (left, right))
            return builder.fadd(*parts)

        a, b, c, d = given
        ab, cd = (sum_up(x, y, [0, 4, 2, 6], [1, 5, 3, 7]) for x, y in ((a, b), (c, d)))
        return sum_up(ab, cd, [0, 1, 4, 5], [2, 3, 6, 7])

    return four(four, four, four, four), generate


@intrinsic
def turn(_typing: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """The first numbers of a, b, c and d, then the second ones, the third and the fourth."""
    result = types.UniTuple(four, 4)

    def generate(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        def pick(x: Any, y: Any, *picked: int) -> Any:
            return builder.shuffle_vector(x, y, ir.Constant(PICKED, list(picked)))

        a, b, c, d = given
        even = pick(a, b, 0, 4, 2, 6), pick(c, d, 0, 4, 2, 6)
        odd = pick(a, b, 1, 5, 3, 7), pick(c, d, 1, 5, 3, 7)
        low, high = (0, 1, 4, 5), (2, 3, 6, 7)
        turned = pick(*even, *low), pick(*odd, *low), pick(*even, *high), pick(*odd, *high)
        return context.make_tuple(builder, result, turned)

    return result(four, four, four, four), generate


@intrinsic
def prefetch(_typing: Any, array: Any, index: Any) -> Any:
    """Ask for the memory around an index, which need not exist, to be brought into the cache."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = part_of(context, builder, signature.args[0], given[0], "data")
        at = builder.bitcast(builder.gep(data, [given[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(function, [at, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


@intrinsic
def is_best(_typing: Any, mode: Any) -> Any:
    """Is this MAX, told by its type alone: an integer that is no truth value."""
    answer = ir.Constant(ir.IntType(1), int(isinstance(mode, types.Integer)))

    def generate(_context: Any, _builder: Any, _signature: Any, _given: Any) -> Any:
        return answer

    return types.boolean(mode), generate
