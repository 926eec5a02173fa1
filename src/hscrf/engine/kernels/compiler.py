"""Numba's compiler without work that kernels do not need: a first call takes half of the time.

Numba optimises every function and turns it into machine code at once, and again within each of its callers. Parts are
only ever called by kernels, so here they stay as they were written until a kernel takes them in. They raise nothing, so
nobody looks whether they did. No kernel makes an array, so there are no references to count. At every operator Numba
asks dozens of functions whether they serve these operands; here it is asked once. It compiles a function anew for each
number that is written into a call of it; here once for all. And its many small objects keep Python's garbage collector
busy.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from llvmlite import binding, ir
from numba.core import (
    analysis,
    base,
    cgutils,
    codegen,
    compiler,
    interpreter,
    postproc,
    transforms,
    typed_passes,
    types,
    untyped_passes,
)
from numba.core import ir as written
from numba.core.compiler_machinery import PassManager, _pass_registry
from numba.core.ir_utils import get_definition, guard
from numba.core.targetconfig import ConfigStack
from numba.core.typing import context

from hscrf.engine.kernels.grids import Fields

Library: Any = codegen.JITCodeLibrary
Compiler: Any = compiler.CompilerBase
Manager: Any = PassManager


class PartLibrary(Library):
    """The code of a part, as it was written down; what it calls is known, and linked by kernels."""

    def add_ir_module(self, module: Any) -> None:
        self._final_module = binding.parse_assembly(cgutils.normalize_ir_text(str(module)))
        for function in self._final_module.functions:
            if not function.is_declaration:
                function.linkage = "linkonce_odr"

    def _get_module_for_linking(self) -> Any:
        return self._final_module

    def finalize(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, _name: str, _environment: Any) -> None:
        """There is no machine code that could look at it."""


class KernelLibrary(Library):
    """The code of a kernel and all of its parts, linked and optimised once."""

    loops = True  # are they unrolled, and made vectors of
    level = 3  # how much LLVM tries

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        found = dict.fromkeys(self._linking_libraries)
        todo = list(found)
        while todo:
            library = todo.pop()
            if isinstance(library, PartLibrary):
                new = [callee for callee in dict.fromkeys(library._linking_libraries) if callee not in found]
                found.update(dict.fromkeys(new))
                todo += new
        self._linking_libraries: Any = list(found)
        super().finalize()

    def _optimize_final_module(self) -> None:
        options = binding.create_pipeline_tuning_options(speed_level=self.level)
        options.loop_vectorization = options.loop_interleaving = options.loop_unrolling = self.loops
        options.slp_vectorization = False
        builder = binding.create_pass_builder(self._codegen._tm, options)
        builder.getModulePassManager().run(self._final_module, builder)


class AsWrittenLibrary(KernelLibrary):
    """A kernel whose loops stay as they are written: half of the code, and half of the time to make it."""

    loops, level = False, 1


def plain_call(description: Any, libraries: Any) -> Any:
    """How a part is called: nothing is looked at afterwards but its result."""

    def call(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        convention = context.call_conv
        function = context.declare_function(builder.module, description)
        result = cgutils.alloca_once(builder, convention.get_return_type(description.restype).pointee)
        packed = convention._get_arg_packer(description.argtypes).as_arguments(builder, given)
        builder.call(function, [result, ir.Constant(function.args[1].type, None), *packed])
        return context.get_returned_value(builder, description.restype, builder.load(result))

    call.signature = description.argtypes  # type: ignore[attr-defined]
    call.libs = tuple(libraries)  # type: ignore[attr-defined]
    return call


ANSWERS: dict[Any, Any] = {}  # by what was asked


def remembered(ask: Any) -> Any:
    """A question that Numba asks itself at every operator; here it is asked until there is an answer for some types."""

    def answer(*given: Any) -> Any:
        asked = [tuple(one.items()) if isinstance(one, dict) else one for one in given]
        options = ConfigStack.top_or_none()
        # each function that is compiled has a context of its own, on which no answer depends
        key = ask, str(options.fastmath), *(one for one in asked if not isinstance(one, base.BaseContext))
        found = ANSWERS.get(key)
        if found is None:
            found = ANSWERS[key] = ask(*given)
        return found

    return answer


def for_all_numbers(compile_for: Any) -> Any:
    """Compile a part once for all numbers that are written into its calls: LLVM puts them in."""

    def answer(function: Any, typing: Any, args: Any, kws: Any) -> Any:
        if issubclass(function.dispatcher._compiler.pipeline_class, PartCompiler):
            args = [types.unliteral(kind) for kind in args]
        return compile_for(function, typing, args, kws)

    return answer


def without_lifetimes(_run: Any) -> Any:
    """Put blocks in order, and leave out when variables die: there are no references to count."""

    def run(processor: Any, **_options: Any) -> None:
        function = processor.func_ir
        function.blocks = transforms.canonicalize_cfg(function.blocks)
        function.variable_lifetime, function.generator_info = postproc.VariableLifetime(function.blocks), None

    return run


def for_starred_calls(process: Any) -> Any:
    """Rewrite calls with a star; do not look for what kernels do not have, such as ``with`` and dicts."""

    def answer(interpreter: Any, rewrites: Any, function: Any) -> Any:
        return process(interpreter, [rewrite for rewrite in rewrites if rewrite.__name__ in STARRED], function)

    return answer


STARRED = ("peep_hole_list_to_tuple", "peep_hole_call_function_ex_to_call_function_kw")
OF_ANALYSIS: Any = (
    (postproc.PostProcessor, "run", without_lifetimes),
    (interpreter.Interpreter, "post_process", for_starred_calls),
)
OF_TYPES: Any = (
    (types.BaseFunction, "get_call_type", remembered),  # which function serves operands of some types
    (context.BaseContext, "resolve_getattr", remembered),  # which type an attribute has
    (base.BaseContext, "get_abi_sizeof", remembered),  # how large a type is
    (base, "_has_loc", remembered),  # does a function want to know the line it is called from
    (types.Dispatcher, "get_call_type", for_all_numbers),
)


@contextmanager
def changed(changes: Any) -> Iterator[None]:
    """Let Numba do less for a while. A change: an owner, the name of its function, and what makes another one of it."""
    before = [getattr(owner, name) for owner, name, _ in changes]
    for (owner, name, change), function in zip(changes, before, strict=True):
        setattr(owner, name, change(function))
    try:
        yield
    finally:
        for (owner, name, _), function in zip(changes, before, strict=True):
            setattr(owner, name, function)


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector out; it would look through objects that all live on."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Given:
    """Something that is not None, for the pass that leaves out branches which are never taken."""

    def __init__(self, kind: Any) -> None:
        self.literal_type = kind


def told_by_kinds(state: Any, expression: Any) -> bool | None:
    """What the types of the parameters tell of an expression: a truth value among fields, or if a mode is MAX."""

    def definition(variable: Any) -> Any:
        return guard(get_definition, state.func_ir, variable)

    def kind_of(variable: Any) -> Any:
        found = definition(variable)
        return state.args[found.index] if isinstance(found, written.Arg) else None

    if expression.op == "getattr":
        fields = kind_of(expression.value)
        member = fields.kinds.get(expression.attr) if isinstance(fields, Fields) else None
        return member.literal_value if isinstance(member, types.BooleanLiteral) else None
    function = definition(expression.func) if expression.op == "call" else None
    if isinstance(function, written.Global) and function.name == "is_best":
        return isinstance(kind_of(expression.args[0]), types.Integer)
    return None


def leave_out_branches(state: Any) -> None:
    """Leave out what is never done, so far as Numba, or ``told_by_kinds``, can tell from the types of the parameters.

    Numba does so where a parameter is None; here also where it is not.
    """
    for block in state.func_ir.blocks.values():
        for line in block.find_insts(written.Assign):
            truth = told_by_kinds(state, line.value) if isinstance(line.value, written.Expr) else None
            if truth is not None:
                line.value = written.Const(truth, line.loc)
                state.func_ir._definitions[line.target.name] = [line.value]
    kinds = [kind if isinstance(kind, (types.NoneType, types.Omitted)) else Given(kind) for kind in state.args]
    analysis.dead_branch_prune(state.func_ir, kinds)


# Passes in which no other function is compiled, such as one of Numba's own, that may need more.
ALONE = (
    untyped_passes.TranslateByteCode,
    untyped_passes.GenericRewrites,
    untyped_passes.ReconstructSSA,
    typed_passes.PreLowerStripPhis,
)


class Passes(Manager):
    """Numba's passes, without those for closures, generators, array expressions and reference counts."""

    def __init__(self) -> None:
        super().__init__("kernels")
        untyped, typed = untyped_passes, typed_passes
        for step in (
            untyped.TranslateByteCode,
            untyped.FixupArgs,
            untyped.RewriteSemanticConstants,
            untyped.DeadBranchPrune,
            untyped.GenericRewrites,
            untyped.ReconstructSSA,
            typed.NopythonTypeInference,
            typed.PreLowerStripPhis,
            typed.NativeLowering,
            typed.NoPythonBackend,
        ):
            self.add_pass(step)
        self.finalize()

    def run(self, state: Any) -> None:
        for step, _ in self.passes:
            if step is untyped_passes.DeadBranchPrune:
                leave_out_branches(state)
                continue
            instance = _pass_registry.get(step).pass_inst
            instance.analysis = self._analysis
            with changed(OF_ANALYSIS if step in ALONE else ()):
                instance.run_pass(state)


@cache
def passes() -> Passes:
    return Passes()


class PartCompiler(Compiler):
    library = PartLibrary

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return [passes()]

    def _compile_core(self) -> Any:
        made = super()._compile_core()
        call, context = plain_call(made.fndesc, [made.library]), self.state.targetctx
        context.remove_user_function(made.entry_point)
        context._defns[made.entry_point].append(call, call.signature)
        return made


class KernelCompiler(PartCompiler):
    library = KernelLibrary

    def _compile_core(self) -> Any:
        with no_collection(), changed(OF_TYPES):
            return Compiler._compile_core(self)


class AsWrittenCompiler(KernelCompiler):
    library = AsWrittenLibrary
