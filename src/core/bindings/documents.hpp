// Python documents as bytes: views of UTF-8, without a copy wherever Python or Arrow already holds UTF-8. They are handed on in
// batches, so that the copies that are needed take little memory, and are made while other threads work (text/reading.hpp).
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/reading.hpp"
#include "text/unicode.hpp"

namespace rankplane::text {

namespace nb = nanobind;

inline bool is_ascii(PyObject* string) {
#if defined(Py_LIMITED_API)
    const nb::object answer = nb::steal(PyObject_CallMethod(string, "isascii", nullptr));
    if (!answer.is_valid()) throw nb::python_error();
    return answer.ptr() == Py_True;
#else
    return PyUnicode_IS_ASCII(string);
#endif
}

inline nb::str to_str(std::string_view text) {
    PyObject* const string = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogatepass");
    if (string == nullptr) throw nb::python_error();
    return nb::steal<nb::str>(string);
}

// Views, and what keeps their bytes alive.
class Documents {
  public:
    Documents(const char* encoding, const char* errors)
        : encoding_(encoding), errors_(errors), is_utf8_(std::string_view(encoding) == "utf-8") {}
    Documents(Documents&&) = default;
    Documents& operator=(Documents&&) = default;
    // After an error, on any thread.
    ~Documents() {
        if (kept_.empty()) return;
        const nb::gil_scoped_acquire locked;
        kept_.clear();
    }

    const std::vector<std::string_view>& views() const { return views_; }
    std::size_t n_bytes() const { return n_bytes_; }

    void add(nb::handle document) {
        if (PyUnicode_Check(document.ptr())) {
            add_str(document);
        } else if (PyBytes_Check(document.ptr())) {
            add_bytes(document);
        } else if (is_missing(document)) {
            views_.emplace_back();
        } else {
            throw nb::type_error(("documents must be str, bytes, None or NaN. Got " + type_name(document) + ".").c_str());
        }
        n_bytes_ += views_.back().size() + document_bytes;
    }

    // For ASCII the view is of the str itself. For others, PyUnicode_AsUTF8 would keep a copy as long as the str exists; ours is
    // freed with this object.
    void add_str(nb::handle string) {
        if (is_ascii(string.ptr())) {
            Py_ssize_t size = 0;
            const char* const text = PyUnicode_AsUTF8AndSize(string.ptr(), &size);
            if (text == nullptr) throw nb::python_error();
            kept_.push_back(nb::borrow(string));
            views_.emplace_back(text, static_cast<std::size_t>(size));
            return;
        }
        PyObject* bytes = PyUnicode_AsUTF8String(string.ptr());
        if (bytes == nullptr) {
            PyErr_Clear();
            bytes = PyUnicode_AsEncodedString(string.ptr(), "utf-8", "surrogatepass");
        }
        if (bytes == nullptr) throw nb::python_error();
        kept_.push_back(nb::steal(bytes));
        views_.push_back(view_of(bytes));
    }

  private:
    static std::string_view view_of(PyObject* bytes) {
        char* text = nullptr;
        Py_ssize_t size = 0;
        if (PyBytes_AsStringAndSize(bytes, &text, &size) != 0) throw nb::python_error();
        return {text, static_cast<std::size_t>(size)};
    }

    static std::string type_name(nb::handle object) { return nb::cast<std::string>(object.type().attr("__name__")); }

    static bool is_missing(nb::handle document) {
        if (document.is_none()) return true;
        if (PyFloat_Check(document.ptr())) {
            const double number = PyFloat_AsDouble(document.ptr());
            return number != number;
        }
        const std::string name = type_name(document);
        return name == "NAType" || name == "NaTType";
    }

    void add_bytes(nb::handle bytes) {
        const std::string_view view = view_of(bytes.ptr());
        const auto* const begin = reinterpret_cast<const unsigned char*>(view.data());
        if (is_utf8_ && is_utf8(begin, begin + view.size())) {
            kept_.push_back(nb::borrow(bytes));
            views_.push_back(view);
            return;
        }
        const nb::object decoded = nb::steal(PyUnicode_FromEncodedObject(bytes.ptr(), encoding_, errors_));
        if (!decoded.is_valid()) throw nb::python_error();
        add_str(decoded);
    }

    const char* encoding_;
    const char* errors_;
    bool is_utf8_;
    std::vector<std::string_view> views_;
    std::vector<nb::object> kept_;
    std::size_t n_bytes_ = 0;
};

// The documents of a list, for Corpus::read without the GIL.
class ListSource {
  public:
    using Batch = Documents;

    ListSource(const nb::list& documents, const std::string& encoding, const std::string& errors, std::size_t bytes_per_batch)
        : documents_(documents), encoding_(encoding), errors_(errors), bytes_per_batch_(bytes_per_batch) {}

    void fill(std::vector<Documents>& batches, std::size_t n) {
        const nb::gil_scoped_acquire locked;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        // The list may change, since other threads run in between.
        for (std::size_t i = 0; i < n && next_ < nb::len(documents_); ++i) {
            Documents batch(encoding_.c_str(), errors_.c_str());
            while (next_ < nb::len(documents_) && batch.n_bytes() < bytes_per_batch_) batch.add(documents_[next_++]);
            batches.push_back(std::move(batch));
        }
    }
    void release(std::vector<Documents>& batches) {
        const nb::gil_scoped_acquire locked;
        batches.clear();
    }

  private:
    const nb::list& documents_;
    const std::string &encoding_, &errors_;
    std::size_t bytes_per_batch_, next_ = 0;
};

// The Arrow C data interface: the three structures of its specification, with the fields that we do not read left unnamed.
struct ArrowSchema {
    const char* format;
    const char *name, *metadata;
    std::int64_t flags, n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};
struct ArrowArray {
    std::int64_t length, null_count, offset, n_buffers, n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};
struct ArrowStream {
    int (*get_schema)(ArrowStream*, ArrowSchema*);
    int (*get_next)(ArrowStream*, ArrowArray*);
    const char* (*get_last_error)(ArrowStream*);
    void (*release)(ArrowStream*);
    void* private_data;
};

// Calls the release function at the end, as the interface requires.
template <class Structure> struct Released : Structure {
    Released() : Structure{} {}
    Released(const Released&) = delete;
    Released& operator=(const Released&) = delete;
    ~Released() {
        if (this->release != nullptr) this->release(this);
    }
};

enum class ArrowText { none, narrow, wide, view };

inline ArrowText text_of(const ArrowSchema& schema) {
    if (schema.format == nullptr) return ArrowText::none;
    const std::string_view format = schema.format;
    if (schema.dictionary != nullptr) return ArrowText::none;
    if (format == "u") return ArrowText::narrow;
    if (format == "U") return ArrowText::wide;
    return format == "vu" ? ArrowText::view : ArrowText::none;
}

// The strings of an array. The interface hands over no length of most buffers; what can be checked is.
class ArrowStrings {
  public:
    ArrowStrings(std::shared_ptr<const ArrowArray> array, ArrowText kind) : array_(std::move(array)), kind_(kind) {
        const bool has_views = kind == ArrowText::view;
        require(array_->length >= 0 && array_->offset >= 0 &&
                array_->length <= std::numeric_limits<std::int64_t>::max() - 1 - array_->offset);
        require(array_->buffers != nullptr && (has_views ? array_->n_buffers >= 3 : array_->n_buffers == 3));
        require(array_->length == 0 || array_->buffers[1] != nullptr);
        n_texts_ = has_views ? array_->n_buffers - 3 : 0;
    }

    std::int64_t size() const { return array_->length; }
    const std::shared_ptr<const ArrowArray>& array() const { return array_; }

    std::string_view operator[](std::int64_t place) const {
        const std::int64_t i = array_->offset + place;
        const auto* const valid = static_cast<const std::uint8_t*>(array_->buffers[0]);
        if (valid != nullptr && (valid[i / 8] >> (i % 8) & 1) == 0) return {};
        if (kind_ == ArrowText::view) return view(i);
        return kind_ == ArrowText::narrow ? between<std::int32_t>(i) : between<std::int64_t>(i);
    }

  private:
    static void require(bool is_sound) {
        if (!is_sound) throw std::invalid_argument("The Arrow array must have buffers and offsets that fit its type and length.");
    }

    std::string_view piece(const void* text, std::int64_t begin, std::int64_t size) const {
        require(begin >= 0 && size >= 0 && (size == 0 || text != nullptr));
        return size == 0 ? std::string_view()
                         : std::string_view(static_cast<const char*>(text) + begin, static_cast<std::size_t>(size));
    }

    template <class Offset> std::string_view between(std::int64_t i) const {
        const auto* const starts = static_cast<const Offset*>(array_->buffers[1]);
        require(starts[i] >= 0 && starts[i + 1] >= starts[i]);
        return piece(array_->buffers[2], starts[i], starts[i + 1] - starts[i]);
    }

    // Four numbers: size, then up to 12 bytes of text, or a prefix, a buffer and a place in it. The last buffer has the sizes of
    // those between.
    std::string_view view(std::int64_t i) const {
        const auto* const numbers = static_cast<const std::int32_t*>(array_->buffers[1]) + 4 * i;
        if (numbers[0] <= 12) return piece(numbers + 1, 0, numbers[0]);
        require(numbers[2] >= 0 && numbers[2] < n_texts_);
        const auto* const sizes = static_cast<const std::int64_t*>(array_->buffers[array_->n_buffers - 1]);
        require(sizes != nullptr && numbers[0] <= sizes[numbers[2]] - numbers[3]);
        return piece(array_->buffers[2 + numbers[2]], numbers[3], numbers[0]);
    }

    std::shared_ptr<const ArrowArray> array_;
    ArrowText kind_;
    std::int64_t n_texts_ = 0;
};

// The strings of arrays, for Corpus::read without the GIL. `next` returns one array after another, and nothing at the end.
class ArrowSource {
  public:
    using Next = std::function<std::shared_ptr<const ArrowArray>()>;

    class Batch {
      public:
        Batch(std::vector<std::string_view> views, std::shared_ptr<const ArrowArray> array)
            : views_(std::move(views)), array_(std::move(array)) {}
        const std::vector<std::string_view>& views() const { return views_; }

      private:
        std::vector<std::string_view> views_;
        std::shared_ptr<const ArrowArray> array_;
    };

    ArrowSource(ArrowText kind, Next next) : kind_(kind), next_(std::move(next)) {}

    void fill(std::vector<Batch>& batches, std::size_t n) {
        while (batches.size() < n) {
            if (!strings_ || place_ == strings_->size()) {
                if (!start_array()) return;
                continue;
            }
            std::vector<std::string_view> views;
            for (std::size_t n_bytes = 0; place_ < strings_->size() && n_bytes < batch_bytes; ++place_) {
                views.push_back((*strings_)[place_]);
                n_bytes += views.back().size() + document_bytes;
            }
            batches.emplace_back(std::move(views), strings_->array());
        }
    }
    void release(std::vector<Batch>& batches) { batches.clear(); }

  private:
    bool start_array() {
        const nb::gil_scoped_acquire locked;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        strings_.reset();
        place_ = 0;
        if (auto array = next_()) strings_.emplace(std::move(array), kind_);
        return strings_.has_value();
    }

    ArrowText kind_;
    Next next_;
    std::optional<ArrowStrings> strings_;
    std::int64_t place_ = 0;
};

}  // namespace rankplane::text
