// Batches of documents from a source to threads.
//
// Only the calling thread asks the source, which may need a lock that only this thread can take, such as Python's. It sees to it
// that the other threads never wait for batches, and processes some itself in between. A source has
//
//     using Batch = ...                     movable, with views(), a list of std::string_view; freed by any thread after an error
//     void fill(std::vector<Batch>&, n)     appends n batches of about batch_bytes, fewer only at the end
//     void release(std::vector<Batch>&)     frees batches that have been processed
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <iterator>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/control.hpp"
#include "common/parallel.hpp"

namespace rankplane::text {

// Small, so that threads end at about the same time and a batch stays in the cache from step to step.
inline constexpr std::size_t batch_bytes = std::size_t{1} << 17;
// What a document costs besides its text.
inline constexpr std::size_t document_bytes = 16;

// Calls process(number, views, thread) for each batch, on any thread, and then what it returns, for one batch at a time.
template <class Source, class Process>
void read_batches(Source& source, std::size_t n_threads, Control& control, const Process& process) {
    using Batch = typename Source::Batch;
    struct Numbered {
        std::size_t number;
        Batch batch;
    };
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Numbered> waiting;
    std::vector<Batch> processed;
    std::size_t n_read = 0;
    bool is_all = false, has_failed = false;

    const auto fill = [&](std::size_t n) {
        std::vector<Batch> batches, used;
        {
            const std::lock_guard lock(mutex);
            used.swap(processed);
        }
        source.release(used);
        source.fill(batches, n);
        const std::lock_guard lock(mutex);
        is_all = batches.size() < n;
        for (Batch& batch : batches) waiting.push_back({n_read++, std::move(batch)});
        changed.notify_all();
    };
    // Enough for every thread that has finished a batch to find another.
    const std::size_t n_least = n_threads > 1 ? 2 * n_threads : 1;
    fill(n_least);
    const std::size_t n_workers = std::min(n_threads, waiting.size());
    const std::thread::id caller = std::this_thread::get_id();
    const auto work = [&](std::size_t thread) {
        const bool is_caller = std::this_thread::get_id() == caller;
        std::unique_lock lock(mutex);
        while (!has_failed) {
            if (is_caller && !is_all && waiting.size() < n_least) {
                lock.unlock();
                fill(n_least);
                lock.lock();
                continue;
            }
            if (waiting.empty()) {
                if (is_all) return;
                changed.wait_for(lock, Control::shortest_pause);
                control.check();
                continue;
            }
            Numbered next = std::move(waiting.front());
            waiting.pop_front();
            lock.unlock();
            auto keep = process(next.number, next.batch.views(), thread);
            lock.lock();
            keep();
            processed.push_back(std::move(next.batch));
        }
    };
    parallel_for(n_workers, n_workers, control, [&](std::size_t thread) {
        try {
            work(thread);
        } catch (...) {
            const std::lock_guard lock(mutex);
            has_failed = true;
            changed.notify_all();
            throw;
        }
    });
    source.release(processed);
}

// Documents in memory.
class ViewSource {
  public:
    class Batch {
      public:
        Batch(const std::string_view* begin, const std::string_view* end) : views_(begin, end) {}
        const std::vector<std::string_view>& views() const { return views_; }

      private:
        std::vector<std::string_view> views_;
    };

    explicit ViewSource(const std::vector<std::string_view>& documents) : documents_(documents) {}

    void fill(std::vector<Batch>& batches, std::size_t n) {
        for (std::size_t i = 0; i < n && next_ < documents_.size(); ++i) {
            const std::size_t first = next_;
            for (std::size_t n_bytes = 0; next_ < documents_.size() && n_bytes < batch_bytes; ++next_) {
                n_bytes += documents_[next_].size() + document_bytes;
            }
            batches.emplace_back(documents_.data() + first, documents_.data() + next_);
        }
    }
    void release(std::vector<Batch>& batches) { batches.clear(); }

  private:
    const std::vector<std::string_view>& documents_;
    std::size_t next_ = 0;
};

}  // namespace rankplane::text
