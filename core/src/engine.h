// The engine of the instruction set in use.
#pragma once
#include "model.h"
#include "sets.h"

namespace hscrf {

struct Engines {
    std::unique_ptr<Engine> (*make)(const Topology&);
    void (*poison)(bool);  // for tests: work space is full of NaN, so that what is read before it is written shows
};

HSCRF_DISPATCH(Engines, engines)

}  // namespace hscrf
