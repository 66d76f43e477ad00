#include <stdexcept>
#include <string>

#include "check.hpp"
#include "isa/isa.hpp"

namespace rankplane::testing {

void test_isa() {
    const std::vector<Isa> isas = supported_isas();
    CHECK(!isas.empty() && isas.back() == Isa::portable, "every machine runs the portable loops");
    CHECK(choose_isa("") == isas.front(), "the best one unless told otherwise");
    for (const Isa isa : isas) CHECK(choose_isa(name_of(isa)) == isa, name_of(isa));
    CHECK(throws<std::invalid_argument>([] { choose_isa("mmx"); }), "an instruction set that we do not know");
}

}  // namespace rankplane::testing
