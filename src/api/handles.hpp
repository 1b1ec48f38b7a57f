// What the opaque handles of the C API hold, and how exceptions become status codes.
#pragma once
#include <atomic>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/mapped.hpp"
#include "core/no_thread.hpp"
#include "data/columns/dataset.hpp"
#include "data/columns/stream.hpp"
#include "engine/session.hpp"
#include "onnx/graph_view.hpp"
#include "onnxtrain/onnxtrain.h"
#include "run/run.hpp"

struct ot_text {
  std::string data;
};
struct ot_value {
  onnxtrain::Value v;
};
struct ot_model {
  std::shared_ptr<const onnxtrain::Model> m;
};
struct ot_graphs {
  onnxtrain::GraphView view;
};
struct ot_session {
  std::unique_ptr<onnxtrain::Session> s;
};
struct ot_dataset {
  onnxtrain::Dataset d;
  std::unique_ptr<onnxtrain::BatchStream> stream;  // instead of columns
};
struct ot_trainer {
  explicit ot_trainer(onnxtrain::run::Run r) : run(std::move(r)) {}
  onnxtrain::Training& t() { return run.training(); }
  const onnxtrain::Training& t() const { return run.training(); }
  onnxtrain::run::Run run;
  std::vector<onnxtrain::ArrayRef> arrays;  // of ot_trainer_step_arrays
  std::atomic<int> stop{0};                 // asks a running fit to save and return
  std::mutex stepping;                      // steps of several threads come one after the other
};

namespace onnxtrain::api {

ot_status remember(const Error& e);
ot_status remember_other(const char* what);

// Runs f; an exception becomes the thread's last error.
template <class F>
ot_status guarded(F&& f) noexcept {
  try {
    f();
    check_mapped_files();
    return OT_OK;
  } catch (const Error& e) {
    return remember(e);
  } catch (const std::bad_alloc&) {
    return remember_other("out of memory");
  } catch (const std::system_error& e) {
    return remember(error_of(e));
  } catch (const std::exception& e) {
    return remember_other(e.what());
  }
}

// A pointer that a call cannot do without.
struct Needed {
  const char* name;
  const void* given;
};
void check_needed(std::initializer_list<Needed> arguments);

// The same as guarded(f); one of `arguments` that is NULL is a usage error that names it.
template <class F>
ot_status guarded(std::initializer_list<Needed> arguments, F&& f) noexcept {
  return guarded([&] {
    check_needed(arguments);
    f();
  });
}

// Lists of `n` names and values, both given.
void check_lists(size_t n, const char* const* names, ot_value* const* values);
Feeds feeds_of(size_t n, const char* const* names, ot_value* const* values);
// Arrays as a dataset.
Dataset dataset_of(size_t n, const char* const* names, ot_value* const* columns);
ProgramOptions options_of(const ot_options* o);
uint64_t seed_of(const ot_options* o);
// A usage error when ONNX has no such element type.
DType checked_dtype(int dtype);
// A usage error when a size is negative or the elements cannot be counted.
Shape checked_shape(int rank, const int64_t* dims);

}  // namespace onnxtrain::api
