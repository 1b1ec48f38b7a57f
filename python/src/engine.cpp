// Engines written in Python: their methods as the C API's callbacks.
#include "engine.hpp"

namespace otpy {

namespace {

// Text of the exception, for the library's error.
int failed(PyEngine& e, nb::python_error& raised, const char** error) {
  const std::string kind = nb::cast<std::string>(raised.type().attr("__name__"));
  nb::object value = nb::borrow(raised.value());
  const std::string said = nb::cast<std::string>(nb::str(value));
  e.text = kind == "EngineFailed" ? said : said.empty() ? kind : kind + ": " + said;
  if (nb::hasattr(value, "hint") && nb::hasattr(value, "message"))
    e.text = said;  // an error of this library, with its code and help
  *error = e.text.c_str();
  return 1;
}

template <class F>
int called(void* context, const char** error, const F& f) {
  nb::gil_scoped_acquire gil;
  PyEngine& e = *static_cast<PyEngine*>(context);
  try {
    f(e);
    return 0;
  } catch (nb::python_error& raised) {
    return failed(e, raised, error);
  } catch (const std::exception& other) {
    e.text = other.what();
    *error = e.text.c_str();
    return 1;
  }
}

// The library's array, for the time of the call.
PyValue borrowed(const ot_value* v) {
  ot_value* out = nullptr;
  ok(ot_value_tensor(ot_value_dtype(v), ot_value_rank(v), ot_value_dims(v), ot_value_data(v),
                     nullptr, nullptr, &out));
  return PyValue(out);
}

int begin(void* context, ot_model* training, uint64_t step, const char** error) {
  return called(context, error,
                [&](PyEngine& e) { e.engine.attr("begin")(PyModel(training), step); });
}

nb::dict named(size_t n, const char* const* names, ot_value* const* values) {
  nb::dict feeds;
  for (size_t k = 0; k < n; ++k) {
    if (ot_value_kind(values[k]) != OT_TENSOR)
      throw std::runtime_error(std::string("input '") + names[k] + "' is no tensor");
    feeds[names[k]] = nb::cast(borrowed(values[k]));
  }
  return feeds;
}

using Take = void (*)(void*, const char*, const ot_value*);

void take_all(const nb::object& items, Take take, void* sink) {
  for (nb::handle item : items) {
    const std::string name = nb::cast<std::string>(item[0]);
    take(sink, name.c_str(), nb::cast<const PyValue&>(item[1]).h.get());
  }
}

int step(void* context, size_t n, const char* const* names, ot_value* const* values, double* loss,
         const char** error) {
  return called(context, error, [&](PyEngine& e) {
    *loss = nb::cast<double>(e.engine.attr("step")(named(n, names, values)));
  });
}

int state(void* context, Take take, void* sink, const char** error) {
  return called(context, error,
                [&](PyEngine& e) { take_all(e.engine.attr("state")(), take, sink); });
}

int evaluate(void* context, size_t n, const char* const* names, ot_value* const* values, Take take,
             void* sink, const char** error) {
  bool refused = false;
  const int status = called(context, error, [&](PyEngine& e) {
    nb::object got = e.engine.attr("evaluate")(named(n, names, values));
    refused = !got[0].is_none();
    if (!refused) return take_all(got[1], take, sink);
    e.text = nb::cast<std::string>(got[0]);
    *error = e.text.c_str();
  });
  return status == 0 && refused ? OT_NOT_EVALUATED : status;
}

int undo(void* context) {
  const char* ignored = nullptr;
  bool done = false;
  called(context, &ignored, [&](PyEngine& e) { done = nb::cast<bool>(e.engine.attr("undo")()); });
  return done ? 0 : 1;
}

}  // namespace

ot_engine PyEngine::functions() {
  ot_engine e{};
  e.size = sizeof e;
  e.context = this;
  e.begin = begin;
  e.step = step;
  e.state = state;
  e.undo = undo;
  e.evaluate = evaluate;
  return e;
}

}  // namespace otpy
