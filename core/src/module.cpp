// The extension module hscrf._core: what Python calls. Every function releases the GIL while it computes.
#include "bind.h"
#include "sets.h"

NB_MODULE(_core, module) {
    module.attr("instruction_set") = hscrf::name_of(hscrf::set_in_use());
    module.attr("compiler") =
#if defined(__clang__)
        "Clang " __clang_version__;
#else
        "GCC " __VERSION__;
#endif
    hscrf::bind_engine(module);
    hscrf::bind_features(module);
}
