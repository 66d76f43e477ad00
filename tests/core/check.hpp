// Checks that count, so that one failure does not hide the next.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <iostream>
#include <string>

namespace rankplane::testing {

inline std::atomic<std::size_t> n_passed{0}, n_failed{0};

inline void check(bool is_true, const char* what, const char* file, int line, const std::string& where) {
    if (is_true) {
        ++n_passed;
        return;
    }
    // A broken loop fails thousands of checks; the first few tell the story.
    if (++n_failed <= 20) std::cerr << file << ":" << line << ": " << what << "  [" << where << "]\n";
}

template <class Error, class Work> bool throws(const Work& work) {
    try {
        work();
    } catch (const Error&) { return true; } catch (const std::exception&) {
        return false;
    }
    return false;
}

}  // namespace rankplane::testing

// `where` names the case; it is only worked out when the check fails.
#define CHECK(condition, where)                                                                            \
    do {                                                                                                   \
        const bool holds = (condition);                                                                    \
        rankplane::testing::check(holds, #condition, __FILE__, __LINE__, holds ? std::string() : (where)); \
    } while (false)
