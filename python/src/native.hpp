// What the parts of the Python module onnxtrain._native share: handles, errors, work without the
// GIL.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "onnxtrain/onnxtrain.hpp"

namespace otpy {

namespace nb = nanobind;
using namespace nb::literals;

// Raises onnxtrain's own exception class for this status.
void raise(ot_status status);

inline void ok(ot_status s) {
  if (s != OT_OK) raise(s);
}

// Without the GIL while the library works.
template <class F>
void released(F&& f) {
  ot_status s;
  {
    nb::gil_scoped_release release;
    s = f();
  }
  ok(s);
}

// The same for an object that one thread at a time may use. The GIL goes first: whoever holds the
// lock may need it (a callback), so nobody may wait for the lock with it. A callback may come back
// to its own object.
class Guard {
 public:
  template <class F>
  void released(F&& f) const {
    otpy::released([&] {
      std::lock_guard lock(*mutex_);
      return f();
    });
  }

 private:
  std::unique_ptr<std::recursive_mutex> mutex_ = std::make_unique<std::recursive_mutex>();
};

nb::bytes take(ot_text* t);

struct PyValue {
  explicit PyValue(ot_value* v) : h(v) {}
  ot::detail::Handle<ot_value, ot_value_free> h;
};

// Owns the names: callers may pass a temporary.
struct Names {
  explicit Names(std::vector<std::string> n) : names(std::move(n)) {
    for (const auto& s : names) p.push_back(s.c_str());
  }
  Names(const Names&) = delete;
  std::vector<std::string> names;
  std::vector<const char*> p;
};

inline std::vector<ot_value*> handles(const std::vector<const PyValue*>& values) {
  std::vector<ot_value*> raw;
  for (const PyValue* p : values) raw.push_back(p ? p->h.get() : nullptr);
  return raw;
}

inline nb::list wrap(const std::vector<ot_value*>& values) {
  nb::list out;
  for (ot_value* v : values) {
    if (v)
      out.append(nb::cast(PyValue(v)));
    else
      out.append(nb::none());
  }
  return out;
}

struct PyModel {
  explicit PyModel(ot_model* m) : h(m) {}
  ot::detail::Handle<ot_model, ot_model_free> h;
};

// Memory, loop iterations and seconds of a run; 0: not given.
using Limits = std::tuple<uint64_t, uint64_t, double>;

inline ot_options options(int threads, uint64_t seed, const Limits& l) {
  return {sizeof(ot_options), threads, seed, std::get<0>(l), std::get<1>(l), std::get<2>(l)};
}

void bind_values(nb::module_& m);
void bind_model(nb::module_& m);
void bind_graphs(nb::module_& m);
void bind_session(nb::module_& m);
void bind_trainer(nb::module_& m);
void bind_fallback(nb::module_& m);
void bind_tokenizer(nb::module_& m);

}  // namespace otpy
