// Trainers: steps, state, epochs.
#include <memory>
#include <utility>

#include "engine.hpp"
#include "interrupt.hpp"
#include "native.hpp"
#include "step.hpp"

namespace otpy {

namespace {

struct PyTrainer {
  PyTrainer() = default;
  PyTrainer(PyTrainer&&) = default;
  ~PyTrainer() { h.reset(nullptr); }  // before the engine that it calls
  ot::detail::Handle<ot_trainer, ot_trainer_free> h;
  Guard guard;
  std::unique_ptr<StepBinding> binding;  // made at the first step
  std::unique_ptr<PyEngine> engine;      // makes the steps instead
};

// An exception of Python code that the library called: kept until the library has returned.
struct Raised {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  void keep(nb::python_error& e) {
    e.restore();
    PyErr_Fetch(&type, &value, &trace);
  }
  void rethrow() const {
    if (!type) return;
    PyErr_Restore(type, value, trace);
    throw nb::python_error();
  }
};

// A Python function called after each epoch; its exception stops the training and is raised
// afterwards.
struct Callback {
  nb::object call;
  Raised raised;

  static int run(void* self, const char* json) {
    nb::gil_scoped_acquire gil;
    auto* x = static_cast<Callback*>(self);
    try {
      return !x->call.is_none() && nb::cast<bool>(x->call(nb::str(json)));
    } catch (nb::python_error& e) {
      x->raised.keep(e);
      return 1;
    }
  }
  void rethrow() const { raised.rethrow(); }
};

using StringList = std::vector<std::string>;
using ValueList = std::vector<const PyValue*>;

// What a step gave: the loss, or (loss, [value]) with the outputs that are not new state.
class Stepped {
 public:
  Stepped(const PyTrainer& t, bool outputs) : trainer_(t.h.get()), wanted_(outputs) {}
  ~Stepped() {
    for (ot_value* v : values_) ot_value_free(v);  // after an error
  }
  Stepped(const Stepped&) = delete;
  Stepped& operator=(const Stepped&) = delete;
  // The rest of a step, under the same lock; without the GIL.
  ot_status collect(ot_status s) {
    for (size_t k = 0; wanted_ && s == OT_OK && k < ot_trainer_output_count(trainer_); ++k) {
      if (ot_trainer_output_is_state(trainer_, k)) continue;
      ot_value* v = nullptr;
      s = ot_trainer_output(trainer_, k, &v);
      if (s == OT_OK) values_.push_back(v);
    }
    return s;
  }
  nb::object result() {
    if (!wanted_) return nb::float_(loss);
    return nb::make_tuple(loss, wrap(std::exchange(values_, {})));
  }
  double loss = 0;

 private:
  ot_trainer* trainer_;
  bool wanted_;
  std::vector<ot_value*> values_;
};

// None when the feeds need the general way (step_values).
nb::object step(PyTrainer& t, nb::handle feeds, int which, uint64_t n, bool outputs) {
  if (!t.binding) t.binding = std::make_unique<StepBinding>(t.h.get());
  StepBinding::Use use(*t.binding, feeds.ptr());
  if (!use.ready()) return nb::none();
  Stepped s(t, outputs);
  t.guard.released([&] {
    return s.collect(ot_trainer_step_arrays(t.h.get(), use.arrays(), which, n, &s.loss));
  });
  return s.result();
}

nb::object step_values(PyTrainer& t, const StringList& names, const ValueList& inputs, int which,
                       uint64_t n, bool outputs) {
  Names in(names);
  std::vector<ot_value*> values = handles(inputs);
  Stepped s(t, outputs);
  t.guard.released([&] {
    ot_status status = OT_OK;
    for (uint64_t k = 0; k < n && status == OT_OK; ++k)
      status = ot_trainer_step(t.h.get(), in.p.size(), in.p.data(), values.data(), which, &s.loss);
    return s.collect(status);
  });
  return s.result();
}

// Runs `fit` without the GIL; Ctrl-C asks it to save and return.
template <class F>
nb::bytes fit_until_stopped(PyTrainer& t, const F& fit) {
  ot_text* result = nullptr;
  bool interrupted = false;
  {
    StopOnInterrupt stop(t.h.get());
    t.guard.released([&] { return fit(&result); });
    interrupted = stop.interrupted();
  }
  nb::bytes out = take(result);
  if (interrupted) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw nb::python_error();
  }
  return out;
}

nb::bytes fit(PyTrainer& t, const StringList& names, const ValueList& columns,
              const StringList& valid_names, const ValueList& valid_columns,
              const std::string& options, nb::object on_epoch) {
  Names n(names), vn(valid_names);
  std::vector<ot_value*> c = handles(columns), vc = handles(valid_columns);
  Callback callback{std::move(on_epoch), {}};
  nb::bytes out = fit_until_stopped(t, [&](ot_text** result) {
    return ot_trainer_fit(t.h.get(), n.p.size(), n.p.data(), c.data(), vn.p.size(), vn.p.data(),
                          vc.data(), options.c_str(), Callback::run, &callback, result);
  });
  callback.rethrow();
  return out;
}

// Batches that a Python object makes: begin(epoch), next() -> (names, values) or None.
class PyBatches {
 public:
  explicit PyBatches(nb::object source) : source_(std::move(source)) {}
  ot_batches functions() {
    ot_batches b{};
    b.size = sizeof b;
    b.context = this;
    b.begin = [](void* self, int64_t epoch) {
      return static_cast<PyBatches*>(self)->called([&](PyBatches& x) {
        x.source_.attr("begin")(epoch);
        return 0;
      });
    };
    b.next = [](void* self, ot_batch* out) {
      return static_cast<PyBatches*>(self)->called([&](PyBatches& x) { return x.draw(out); });
    };
    b.per_epoch = nb::cast<int64_t>(source_.attr("per_epoch"));
    return b;
  }
  Raised raised;

 private:
  template <class F>
  int called(const F& f) {
    nb::gil_scoped_acquire gil;
    try {
      return f(*this);
    } catch (nb::python_error& e) {
      raised.keep(e);
      return -1;
    }
  }
  int draw(ot_batch* out) {
    nb::object batch = source_.attr("next")();
    if (batch.is_none()) return 0;
    batch_ = batch;  // the values live until the next one
    names_ = std::make_unique<Names>(nb::cast<StringList>(nb::object(batch[0])));
    values_ = handles(nb::cast<ValueList>(nb::object(batch[1])));
    out->count = values_.size();
    out->names = names_->p.data();
    out->values = values_.data();
    return 1;
  }
  nb::object source_, batch_;
  std::unique_ptr<Names> names_;
  std::vector<ot_value*> values_;
};

nb::bytes fit_batches(PyTrainer& t, nb::object source, const StringList& valid_names,
                      const ValueList& valid_columns, const std::string& options,
                      nb::object on_epoch) {
  PyBatches batches(std::move(source));
  const ot_batches functions = batches.functions();
  ot_dataset* made = nullptr;
  ok(ot_dataset_batches(&functions, &made));
  ot::detail::Handle<ot_dataset, ot_dataset_free> train(made), valid;
  Names vn(valid_names);
  std::vector<ot_value*> vc = handles(valid_columns);
  if (!vc.empty()) {
    ok(ot_dataset_arrays(vc.size(), vn.p.data(), vc.data(), &made));
    valid.reset(made);
  }
  Callback callback{std::move(on_epoch), {}};
  try {
    nb::bytes out = fit_until_stopped(t, [&](ot_text** result) {
      return ot_trainer_fit_data(t.h.get(), train.get(), valid.get(), options.c_str(),
                                 Callback::run, &callback, result);
    });
    callback.rethrow();
    return out;
  } catch (nb::python_error&) {
    batches.raised.rethrow();  // what the batches raised says more than that they failed
    throw;
  }
}

nb::bytes evaluate(PyTrainer& t, const StringList& names, const ValueList& columns, int64_t batch) {
  Names n(names);
  std::vector<ot_value*> c = handles(columns);
  ot_text* result = nullptr;
  t.guard.released([&] {
    return ot_trainer_evaluate(t.h.get(), n.p.size(), n.p.data(), c.data(), batch, &result);
  });
  return take(result);
}

void bind_state(nb::class_<PyTrainer>& c) {
  c.def("state_names",
        [](const PyTrainer& t) {
          ot_text* text = nullptr;
          t.guard.released([&] { return ot_trainer_state_names(t.h.get(), &text); });
          return take(text);
        })
      .def("get",
           [](const PyTrainer& t, const std::string& name) {
             ot_value* v = nullptr;
             t.guard.released([&] { return ot_trainer_get(t.h.get(), name.c_str(), &v); });
             return PyValue(v);
           })
      .def("set",
           [](PyTrainer& t, const std::string& name, const PyValue& v) {
             t.guard.released([&] { return ot_trainer_set(t.h.get(), name.c_str(), v.h.get()); });
           })
      .def("adapt",
           [](const PyTrainer& t, const std::string& input, const PyValue& array) {
             ot_value* v = nullptr;
             t.guard.released(
                 [&] { return ot_trainer_adapt(t.h.get(), input.c_str(), array.h.get(), &v); });
             return PyValue(v);
           })
      .def("unlike",
           [](const PyTrainer& t, const std::string& input, const PyValue& rows) {
             ot_text* text = nullptr;
             t.guard.released(
                 [&] { return ot_trainer_unlike(t.h.get(), input.c_str(), rows.h.get(), &text); });
             return take(text);
           })
      .def_prop_rw(
          "rate",
          [](const PyTrainer& t) {
            double r = 0;
            t.guard.released([&] { return ot_trainer_rate(t.h.get(), &r); });
            return r;
          },
          [](PyTrainer& t, double r) {
            t.guard.released([&] { return ot_trainer_set_rate(t.h.get(), r); });
          })
      .def_prop_rw(
          "step_count", [](const PyTrainer& t) { return ot_trainer_step_count(t.h.get()); },
          [](PyTrainer& t, uint64_t n) {
            t.guard.released([&] { return ot_trainer_set_step_count(t.h.get(), n); });
          })
      .def("save",
           [](const PyTrainer& t, const std::string& path) {
             t.guard.released([&] { return ot_trainer_save(t.h.get(), path.c_str()); });
           })
      .def("model", [](const PyTrainer& t) {
        ot_model* out = nullptr;
        t.guard.released([&] { return ot_trainer_model(t.h.get(), &out); });
        return PyModel(out);
      });
}

// Several processes (docs/distributed.md).
void bind_processes(nb::module_& m, nb::class_<PyTrainer>& c) {
  m.def("abort_processes", &ot_abort_processes);
  m.def("launch_rank", &ot_launch_rank);
  c.def("distribute",
        [](PyTrainer& t, const std::string& mode, int blocks, double timeout, int64_t comm,
           const std::string& norm, const std::string& type, bool shard) {
          auto text = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
          const ot_distributed d = {
              sizeof(ot_distributed), mode.c_str(), blocks, timeout, comm, text(norm), text(type),
              shard ? 1 : 0};
          t.guard.released([&] { return ot_trainer_distribute(t.h.get(), &d); });
        })
      .def_prop_ro("rank", [](const PyTrainer& t) { return ot_trainer_rank(t.h.get()); })
      .def_prop_ro("ranks", [](const PyTrainer& t) { return ot_trainer_ranks(t.h.get()); })
      .def("traffic", [](const PyTrainer& t) {
        uint64_t bytes = 0, messages = 0;
        t.guard.released([&] { return ot_trainer_traffic(t.h.get(), &bytes, &messages); });
        return nb::make_tuple(bytes, messages);
      });
}

}  // namespace

void bind_trainer(nb::module_& m) {
  nb::class_<PyTrainer> c(m, "Trainer");
  bind_processes(m, c);
  c.def(
       "__init__",
       [](PyTrainer* self, const PyModel& model, uint64_t seed, int threads, const Limits& limits,
          bool take) {
         new (self) PyTrainer;
         ot_options o = options(threads, seed, limits);
         ot_trainer* t = nullptr;
         auto make =
             take ? ot_trainer_take : +[](ot_model* m, const ot_options* o, ot_trainer** t) {
               return ot_trainer_create(m, o, t);
             };
         released([&] { return make(model.h.get(), &o, &t); });
         self->h.reset(t);
       },
       "model"_a, "seed"_a, "threads"_a, "limits"_a, "take"_a = false)
      .def("initialize",
           [](PyTrainer& t) { t.guard.released([&] { return ot_trainer_initialize(t.h.get()); }); })
      .def("memory",
           [](PyTrainer& t) {
             ot_text* json = nullptr;
             t.guard.released([&] { return ot_trainer_memory(t.h.get(), &json); });
             return take(json);
           })
      .def("set_engine",
           [](PyTrainer& t, nb::object engine) {
             auto fresh = std::make_unique<PyEngine>(PyEngine{std::move(engine), {}});
             const ot_engine e = fresh->functions();
             t.guard.released([&] { return ot_trainer_set_engine(t.h.get(), &e); });
             t.engine = std::move(fresh);
           })
      .def("engine_step",
           [](PyTrainer& t, const StringList& names, const ValueList& inputs) {
             Names in(names);
             std::vector<ot_value*> values = handles(inputs);
             double loss = 0;
             t.guard.released([&] {
               return ot_trainer_step(t.h.get(), in.p.size(), in.p.data(), values.data(), -1,
                                      &loss);
             });
             return loss;
           })
      .def("step", &step)
      .def("step_values", &step_values)
      .def("output_names",
           [](const PyTrainer& t) {
             nb::list out;
             for (size_t k = 0; k < ot_trainer_output_count(t.h.get()); ++k)
               out.append(nb::make_tuple(std::string(ot_trainer_output_name(t.h.get(), k)),
                                         ot_trainer_output_is_state(t.h.get(), k) != 0));
             return out;
           })
      .def("output",
           [](const PyTrainer& t, size_t k) {
             ot_value* v = nullptr;
             t.guard.released([&] { return ot_trainer_output(t.h.get(), k, &v); });
             return PyValue(v);
           })
      .def("fit", &fit, "names"_a, "columns"_a, "valid_names"_a, "valid_columns"_a, "options"_a,
           "on_epoch"_a.none())
      .def("fit_batches", &fit_batches, "source"_a, "valid_names"_a, "valid_columns"_a, "options"_a,
           "on_epoch"_a.none())
      .def("evaluate", &evaluate);
  bind_state(c);
  m.def("resume", [](const std::string& path, int threads, const Limits& limits) {
    ot_options o = options(threads, 0, limits);
    ot_trainer* t = nullptr;
    released([&] { return ot_trainer_resume(path.c_str(), &o, &t); });
    PyTrainer p;
    p.h.reset(t);
    return p;
  });
}

}  // namespace otpy
