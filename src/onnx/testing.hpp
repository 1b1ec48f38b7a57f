// Help for the tests of onnx/: a table that knows every ONNX operator (without kernels), and
// models from text with training steps put together from graphs in text.
#pragma once
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "google/protobuf/util/field_comparator.h"
#include "google/protobuf/util/message_differencer.h"
#include "onnx/defs/parser.h"
#include "onnx/defs/schema.h"
#include "onnx/onnx.hpp"
#include "onnx/onnx_pb.h"

namespace onnxtrain::testing_onnx {

// Operators that ONNX defines as functions are left out unless asked for: they get expanded.
inline OpTable make_table(bool with_functions) {
  OpTable table;
  std::set<std::string> seen;
  for (const auto& s : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    if (!with_functions && (s.HasFunction() || s.HasContextDependentFunction())) continue;
    if (!seen.insert(cat(s.domain(), ":", s.Name(), ":", s.since_version())).second) continue;
    Op op;
    op.name = s.Name();
    op.domain = s.domain();
    op.since = s.since_version();
    table.add(op);
  }
  return table;
}
inline const OpTable& primitives() {
  static const OpTable table = make_table(false);
  return table;
}
inline const OpTable& everything() {
  static const OpTable table = make_table(true);
  return table;
}

template <class P>
P parse(std::string_view text) {
  P p;
  const auto status = onnx::OnnxParser::Parse(p, text);
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return p;
}

// An algorithm's text may read names of the main graph: the parser does not mind.
inline void add_step(onnx::ModelProto& m, std::string_view algorithm,
                     std::string_view initialization = {}) {
  auto* t = m.add_training_info();
  *t->mutable_algorithm() = parse<onnx::GraphProto>(algorithm);
  if (!initialization.empty())
    *t->mutable_initialization() = parse<onnx::GraphProto>(initialization);
}
inline void bind_update(onnx::ModelProto& m, int step, const std::string& key,
                        const std::string& value) {
  auto* b = m.mutable_training_info(step)->add_update_binding();
  b->set_key(key);
  b->set_value(value);
}
inline void bind_initial(onnx::ModelProto& m, int step, const std::string& key,
                         const std::string& value) {
  auto* b = m.mutable_training_info(step)->add_initialization_binding();
  b->set_key(key);
  b->set_value(value);
}

inline Model load(const onnx::ModelProto& m, const OpTable& ops = primitives(),
                  const LoadOptions& o = {}) {
  return load_model_bytes(m.SerializeAsString(), "", ops, o);
}
// The code of the error that loading gives; "" if it loads.
inline std::string load_error(const onnx::ModelProto& m, const OpTable& ops = primitives(),
                              bool check = true) {
  try {
    LoadOptions o;
    o.check = check;
    load_model_bytes(m.SerializeAsString(), "", ops, o);
  } catch (const Error& e) {
    return e.code();
  }
  return {};
}
inline std::string differences(const onnx::ModelProto& a, const onnx::ModelProto& b) {
  google::protobuf::util::DefaultFieldComparator equal;
  equal.set_treat_nan_as_equal(true);
  google::protobuf::util::MessageDifferencer d;
  d.set_field_comparator(&equal);
  std::string report;
  d.ReportDifferencesToString(&report);
  return d.Compare(a, b) ? std::string() : report + " ";
}

// y = x * w, loss = mean((y - t)^2), one step of plain gradient descent, counter and
// initialization.
inline onnx::ModelProto training_model() {
  auto m = parse<onnx::ModelProto>(R"(
    <ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>
    main (float[N,2] x) => (float[N,3] y) <float[2,3] w = {1,2,3,4,5,6}> {
      h = MatMul(x, w)
      y = Tanh(h)
    })");
  add_step(m, R"(step (float[N,3] t) => (float loss, float[2,3] w_new, int64 n_new)
    <float rate = {0.1}, int64 n = {0}, int64 one = {1}> {
      d = Sub(y, t)
      q = Mul(d, d)
      loss = ReduceMean<keepdims=0>(q)
      g = ai.onnx.preview.training.Gradient<xs=["w"], zs=["x", "t"], y="loss">(w, x, t)
      s = Mul(rate, g)
      w_new = Sub(w, s)
      n_new = Add(n, one)
    })",
           R"(init () => (float[2,3] w0) { w0 = RandomNormal<shape=[2,3]>() })");
  bind_update(m, 0, "w", "w_new");
  bind_update(m, 0, "n", "n_new");
  bind_initial(m, 0, "w", "w0");
  return m;
}

}  // namespace onnxtrain::testing_onnx
