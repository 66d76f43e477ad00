// An array that gives its memory back to the system as soon as it is cut or freed. The tokens of a corpus are most of the memory of
// a fit and are freed block by block while the matrix grows; a heap would keep the holes. A small array, all there is when a few
// documents are transformed, lies on the heap: the system takes longer to give a page than a short text takes in all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#define RANKPLANE_HAS_MMAP 1
#include <sys/mman.h>
#endif

namespace rankplane::text {

template <class T> class Pages {
  public:
    Pages() = default;
    Pages(const T* begin, std::size_t size) : size_(size), n_mapped_(is_large(size) ? round_up(size) : 0) {
        if (size == 0) return;
        data_ = static_cast<T*>(n_mapped_ > 0 ? map(n_mapped_) : std::malloc(size * sizeof(T)));
        if (data_ == nullptr) throw std::bad_alloc();
        std::memcpy(data_, begin, size * sizeof(T));
    }
    Pages(Pages&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          n_mapped_(std::exchange(other.n_mapped_, 0)) {}
    Pages& operator=(Pages&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(n_mapped_, other.n_mapped_);
        return *this;
    }
    ~Pages() {
        if (n_mapped_ > 0) {
            unmap_from(0);
        } else {
            std::free(data_);
        }
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return size_; }
    const T& operator[](std::size_t i) const { return data_[i]; }

    // Keeps the first `size` entries.
    void truncate(std::size_t size) {
        size_ = size;
        if (n_mapped_ > 0) unmap_from(std::max(round_up(size), page));
    }

  private:
    static constexpr std::size_t page = std::size_t{1} << 16;  // a multiple of every page size in use

    static std::size_t round_up(std::size_t size) { return (size * sizeof(T) + page - 1) / page * page; }

#if defined(RANKPLANE_HAS_MMAP)
    static bool is_large(std::size_t size) { return size * sizeof(T) >= page; }
    static void* map(std::size_t n_bytes) {
        void* const memory = mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return memory == MAP_FAILED ? nullptr : memory;
    }
    void unmap_from(std::size_t n_kept) {
        if (n_kept < n_mapped_) munmap(reinterpret_cast<char*>(data_) + n_kept, n_mapped_ - n_kept);
        n_mapped_ = std::min(n_kept, n_mapped_);
    }
#else
    static bool is_large(std::size_t) { return false; }
    static void* map(std::size_t) { return nullptr; }
    void unmap_from(std::size_t) {}
#endif

    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t n_mapped_ = 0;  // bytes; 0 on the heap
};

}  // namespace rankplane::text
