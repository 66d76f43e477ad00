// An array that gives its memory back to the system as soon as it is cut or freed. The tokens of a corpus are most of the memory of
// a fit and are freed block by block while the matrix grows; a heap would keep the holes.
#pragma once

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
    Pages(const T* begin, std::size_t size) : size_(size), n_bytes_(round_up(size)) {
        if (n_bytes_ == 0) return;
#if defined(RANKPLANE_HAS_MMAP)
        void* const memory = mmap(nullptr, n_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
#else
        void* const memory = std::malloc(n_bytes_);
        if (memory == nullptr) throw std::bad_alloc();
#endif
        data_ = static_cast<T*>(memory);
        std::memcpy(data_, begin, size * sizeof(T));
    }
    Pages(Pages&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          n_bytes_(std::exchange(other.n_bytes_, 0)) {}
    Pages& operator=(Pages&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(n_bytes_, other.n_bytes_);
        return *this;
    }
    ~Pages() { release_from(0); }

    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return size_; }
    const T& operator[](std::size_t i) const { return data_[i]; }

    // Keeps the first `size` entries.
    void truncate(std::size_t size) {
        size_ = size;
        release_from(round_up(size));
    }

  private:
    static constexpr std::size_t page = std::size_t{1} << 16;  // a multiple of every page size in use

    static std::size_t round_up(std::size_t size) { return (size * sizeof(T) + page - 1) / page * page; }

    void release_from(std::size_t n_kept) {
        if (n_kept >= n_bytes_) return;
#if defined(RANKPLANE_HAS_MMAP)
        munmap(reinterpret_cast<char*>(data_) + n_kept, n_bytes_ - n_kept);
        n_bytes_ = n_kept;
#else
        if (n_kept > 0) return;
        std::free(data_);
        n_bytes_ = 0;
#endif
        if (n_kept == 0) data_ = nullptr;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t n_bytes_ = 0;
};

}  // namespace rankplane::text
