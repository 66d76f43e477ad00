// The tests of the core, without Python: small enough to run under the sanitizers.
#include <iostream>

#include "check.hpp"

namespace rankplane::testing {
void test_columns();
void test_isa();
void test_kernel();
void test_parallel();
void test_scores();
void test_sharing();
void test_solver();
void test_text();
}  // namespace rankplane::testing

int main() {
    using namespace rankplane::testing;
    test_columns();
    test_isa();
    test_kernel();
    test_parallel();
    test_scores();
    test_sharing();
    test_solver();
    test_text();
    std::cout << n_passed << " passed, " << n_failed << " failed\n";
    return n_failed == 0 ? 0 : 1;
}
