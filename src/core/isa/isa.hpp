// The instruction sets this build knows, and the one in use.
#pragma once

#include <string>
#include <vector>

#include "linear/sweep.hpp"

namespace rankplane {

// Best first; only those that this machine can run.
std::vector<Isa> supported_isas();

const char* name_of(Isa isa);

// The best one, or the one that `name` asks for. Throws std::invalid_argument if this machine does not have it.
Isa choose_isa(const std::string& name);

}  // namespace rankplane
