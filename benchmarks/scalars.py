"""The lanes as four scalars: what ``hscrf.engine.kernels.plain`` does, compiled. LLVM may make vectors of them itself.

``install`` lets all kernels use them. It is for a process that has compiled nothing yet, and that has a folder of its
own for compiled code.
"""

import inspect
import sys
import typing

from llvmlite import binding
from numba import extending, types

from hscrf.engine.kernels import plain, vectors
from hscrf.engine.kernels.compile import inlined, unsigned
from hscrf.engine.kernels.grids import kept_apart, part_of
from hscrf.engine.kernels.vectors import larger, smaller

ONE, TWO, THREE = unsigned(1), unsigned(2), unsigned(3)


def address(context, builder, kind, array, index):
    return builder.gep(part_of(context, builder, kind, array, "data"), [index])


@extending.intrinsic
def read(_typing, array, index):
    """The number at an index of flat memory."""

    def generate(context, builder, signature, given):
        return kept_apart(builder, builder.load(address(context, builder, signature.args[0], *given)), "number")

    return types.float64(array, types.uint64), generate


@extending.intrinsic
def write(_typing, value, array, index):
    """Write a number to an index of flat memory."""

    def generate(context, builder, signature, given):
        target = address(context, builder, signature.args[1], *given[1:])
        kept_apart(builder, builder.store(given[0], target), "number")
        return context.get_dummy_value()

    return types.void(types.float64, array, types.uint64), generate


@inlined
def load(array, index):
    return read(array, index), read(array, index + ONE), read(array, index + TWO), read(array, index + THREE)


@inlined
def store(value, array, index):
    a, b, c, d = value
    write(a, array, index)
    write(b, array, index + ONE)
    write(c, array, index + TWO)
    write(d, array, index + THREE)


@inlined
def spread(value):
    number = float(value)
    return number, number, number, number


@inlined
def add(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]


@inlined
def multiply(a, b):
    return a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]


@inlined
def multiply_add(a, b, c):
    return a[0] * b[0] + c[0], a[1] * b[1] + c[1], a[2] * b[2] + c[2], a[3] * b[3] + c[3]


multiply_add_at_once = multiply_add


@inlined
def higher(a, b):
    return larger(a[0], b[0]), larger(a[1], b[1]), larger(a[2], b[2]), larger(a[3], b[3])


@inlined
def number_above(a, b, bound):
    return b if bound < b < a else a


@inlined
def lower_above(a, b, bound):
    first, second = number_above(a[0], b[0], bound[0]), number_above(a[1], b[1], bound[1])
    return first, second, number_above(a[2], b[2], bound[2]), number_above(a[3], b[3], bound[3])


@inlined
def number_where(a, bound, b, c):
    return b if a > bound else c


@inlined
def where_above(a, bound, b, c):
    first, second = number_where(a[0], bound[0], b[0], c[0]), number_where(a[1], bound[1], b[1], c[1])
    return first, second, number_where(a[2], bound[2], b[2], c[2]), number_where(a[3], bound[3], b[3], c[3])


@inlined
def lanes(value):
    return value


@inlined
def pack(a, b, c, d):
    return a, b, c, d


@inlined
def lane_sum(value):
    return (value[0] + value[2]) + (value[1] + value[3])


@inlined
def lane_max(value):
    return larger(larger(value[0], value[1]), larger(value[2], value[3]))


@inlined
def lane_min(value):
    return smaller(smaller(value[0], value[1]), smaller(value[2], value[3]))


@inlined
def lane_sums(a, b, c, d):
    return lane_sum(a), lane_sum(b), lane_sum(c), lane_sum(d)


@inlined
def turn(a, b, c, d):
    first, second = (a[0], b[0], c[0], d[0]), (a[1], b[1], c[1], d[1])
    return first, second, (a[2], b[2], c[2], d[2]), (a[3], b[3], c[3], d[3])


# ------------------------------------------------------------------------------------------- in place of the lanes


def install():
    """Put the scalars in the place of the vectors wherever the package has imported them, or will."""
    functions = {name: item for name, item in vars(plain).items() if inspect.isfunction(item) and name[0] != "_"}
    of_four = [name for name, item in functions.items() if plain.Four in typing.get_type_hints(item).values()]
    if missing := set(of_four) - set(globals()):
        raise NotImplementedError(f"benchmarks/scalars.py lacks {', '.join(sorted(missing))} of the lanes")
    scalars = {id(getattr(vectors, name)): globals()[name] for name in of_four}
    for module in [module for name, module in sys.modules.items() if name.startswith("hscrf.")]:
        for name, item in list(vars(module).items()):
            if id(item) in scalars:
                setattr(module, name, scalars[id(item)])


def let_llvm_pack():
    """Switch on LLVM's vectoriser of straight-line code (SLP), which packs equal operations on neighbouring numbers."""
    create = binding.create_pass_builder

    def create_with_packing(machine, options):
        options.slp_vectorization = True
        return create(machine, options)

    binding.create_pass_builder = create_with_packing
