// Arrays that return their memory to the system as soon as they are freed. The tokens of a corpus are most of the memory of a fit
// and are freed block by block while the matrix grows; a heap would keep the holes. A store puts one array after the other on huge
// pages, and pages are returned with the last array on them. The first arrays, as long as they are small, are on the heap, since
// mapping a page takes longer than processing a short text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#define RANKPLANE_HAS_MMAP 1
#include <sys/mman.h>
#endif

namespace rankplane::text {

// Memory that several arrays share.
class Chunk {
  public:
    static constexpr std::size_t huge_page = std::size_t{1} << 21;

#if defined(RANKPLANE_HAS_MMAP)
    explicit Chunk(std::size_t n_bytes) : size_(n_bytes) {
        // So that it starts on a huge page, more is mapped, and the rest returned.
        const std::size_t n_more = n_bytes % huge_page == 0 ? huge_page : 0;
        void* const mapped = mmap(nullptr, n_bytes + n_more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) throw std::bad_alloc();
        data_ = static_cast<char*>(mapped);
        if (n_more == 0) return;
        const std::size_t n_before = (huge_page - reinterpret_cast<std::uintptr_t>(data_) % huge_page) % huge_page;
        if (n_before > 0) munmap(data_, n_before);
        data_ += n_before;
        if (n_before < n_more) munmap(data_ + n_bytes, n_more - n_before);
#if defined(__linux__)
        madvise(data_, n_bytes, MADV_HUGEPAGE);
#endif
    }
    ~Chunk() { munmap(data_, size_); }
#else
    explicit Chunk(std::size_t n_bytes) : data_(static_cast<char*>(std::malloc(n_bytes))), size_(n_bytes) {
        if (data_ == nullptr) throw std::bad_alloc();
    }
    ~Chunk() { std::free(data_); }
#endif
    Chunk(const Chunk&) = delete;
    Chunk& operator=(const Chunk&) = delete;

    char* data() { return data_; }
    std::size_t size() const { return size_; }

  private:
    char* data_;
    std::size_t size_;
};

// An array that a PageStore made.
template <class T> class Pages {
  public:
    Pages() = default;
    Pages(std::shared_ptr<void> memory, T* data, std::size_t size) : memory_(std::move(memory)), data_(data), size_(size) {}

    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return size_; }
    const T& operator[](std::size_t i) const { return data_[i]; }

    // Keeps the first `size` entries.
    void truncate(std::size_t size) { size_ = size; }

  private:
    std::shared_ptr<void> memory_;
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

class PageStore {
  public:
    template <class T> Pages<T> store(const T* begin, std::size_t size) {
        if (size == 0) return {};
        // What comes next starts on a cache line of its own.
        const std::size_t n_bytes = (size * sizeof(T) + 63) / 64 * 64;
        std::shared_ptr<void> memory;
        void* place;
        if (chunk_ == nullptr && n_on_heap_ + n_bytes <= most_on_heap) {
            n_on_heap_ += n_bytes;
            place = std::malloc(n_bytes);
            if (place == nullptr) throw std::bad_alloc();
            memory = std::shared_ptr<void>(place, [](void* all) { std::free(all); });
        } else {
            if (chunk_ == nullptr || chunk_->size() - n_used_ < n_bytes) start_chunk(n_bytes);
            memory = chunk_;
            place = chunk_->data() + std::exchange(n_used_, n_used_ + n_bytes);
        }
        std::memcpy(place, begin, size * sizeof(T));
        return {std::move(memory), static_cast<T*>(place), size};
    }

  private:
    static constexpr std::size_t most_on_heap = std::size_t{1} << 16, first_chunk = std::size_t{1} << 18;

    // Chunks grow to the size of a huge page; a larger array has one of its own.
    void start_chunk(std::size_t n_least) {
        constexpr std::size_t page = std::size_t{1} << 16;  // a multiple of every page size in use
        const std::size_t n_next = chunk_ == nullptr ? first_chunk : std::min(Chunk::huge_page, chunk_->size() * 2);
        chunk_ = std::make_shared<Chunk>(std::max(n_next, (n_least + page - 1) / page * page));
        n_used_ = 0;
    }

    std::shared_ptr<Chunk> chunk_;
    std::size_t n_used_ = 0, n_on_heap_ = 0;
};

}  // namespace rankplane::text
