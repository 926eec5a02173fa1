"""Numba's compiler without work that kernels do not need: a first call takes a third less time.

Numba optimises every function and turns it into machine code at once, and again within each of its callers. Parts are
only ever called by kernels, so here they stay as they were written until a kernel takes them in. It looks for
references to count, twice; kernels count none. And its many small objects keep Python's garbage collector busy.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import codegen, compiler

Library: Any = codegen.JITCodeLibrary
Compiler: Any = compiler.CompilerBase


class PartLibrary(Library):
    """The code of a part: written down, linked with what it calls, and left alone."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, _name: str, _environment: Any) -> None:
        """There is no machine code that could look at it."""


class KernelLibrary(Library):
    """The code of a kernel and all of its parts, optimised once."""

    def _optimize_final_module(self) -> None:
        manager, builder = self._codegen._module_pass_manager()
        manager.run(self._final_module, builder)


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


class PartCompiler(Compiler):
    library = PartLibrary

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return [compiler.DefaultPassBuilder.define_nopython_pipeline(state)]


class KernelCompiler(PartCompiler):
    library = KernelLibrary

    def _compile_core(self) -> Any:
        with no_collection():
            return super()._compile_core()
