// How a long piece of work is told to stop, and how it tells how far it has come.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>

namespace rankplane::text {

struct Stopped : std::exception {
    const char* what() const noexcept override { return "The work was stopped."; }
};

class Control {
  public:
    void request_stop() { must_stop_.store(true, std::memory_order_relaxed); }
    // Every loop over documents calls this once per document.
    void check() const {
        if (must_stop_.load(std::memory_order_relaxed)) throw Stopped();
    }
    void add_done(std::size_t n) { n_done_.fetch_add(n, std::memory_order_relaxed); }
    std::size_t n_done() const { return n_done_.load(std::memory_order_relaxed); }

  private:
    std::atomic<bool> must_stop_{false};
    std::atomic<std::size_t> n_done_{0};
};

}  // namespace rankplane::text
