// The checker's entry points and the rules on versions.
#include "onnx/check/checker.hpp"

#include <algorithm>

#include "onnx/read/reader.hpp"

namespace onnxtrain {

void Findings::error(std::string code, std::string rule, std::string message, std::string hint) {
  if (!full())
    list.push_back({Finding::Level::kError, std::move(code), std::move(rule), std::move(message),
                    std::move(hint)});
}

void Findings::warning(std::string code, std::string rule, std::string message, std::string hint) {
  if (!full())
    list.push_back({Finding::Level::kWarning, std::move(code), std::move(rule), std::move(message),
                    std::move(hint)});
}

bool Findings::has_error() const {
  return std::any_of(list.begin(), list.end(),
                     [](const Finding& f) { return f.level == Finding::Level::kError; });
}

void throw_first_error(const Findings& findings) {
  for (const Finding& f : findings.list)
    if (f.level == Finding::Level::kError) {
      const size_t more = size_t(std::count_if(
                              findings.list.begin(), findings.list.end(),
                              [](const Finding& x) { return x.level == Finding::Level::kError; })) -
                          1;
      model_error(f.code,
                  more == 0 ? f.message : cat(f.message, " (and ", more, " more: onnxtrain check)"),
                  f.hint);
    }
}

Imports imports_of(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& list) {
  Imports imports;
  for (const auto& o : list) imports[normal_domain(o.domain())] = int(o.version());
  return imports;
}

void check_versions(const ModelSource& source, Findings& out) {
  const onnx::ModelProto& m = source.proto;
  const int64_t ir = m.ir_version();
  if (ir > 14)
    out.error("OT1020", "", cat("the file has IR version ", ir, "; this build knows 3 to 14"),
              "export it with an older version of ONNX, or update onnxtrain");
  else if (ir < 3)
    out.error("OT1020", "",
              cat("the file has IR version ", ir, "; versions before 3 (2017) are not supported"));
  if (m.opset_import_size() == 0)
    out.error("OT1021", "", "the file does not say which operator sets it uses (opset_import)");
  struct Range {
    const char* domain;
    int64_t low, high;
  };
  constexpr Range kRanges[] = {
      {"", 1, 28}, {"ai.onnx.ml", 1, 5}, {"ai.onnx.preview.training", 1, 1}};
  std::unordered_map<std::string, int64_t> seen;
  for (const auto& o : m.opset_import()) {
    const std::string domain = normal_domain(o.domain());
    const std::string shown = domain.empty() ? "ai.onnx" : domain;
    // The same line twice is harmless, and some exporters write it.
    if (auto [it, fresh] = seen.emplace(domain, o.version()); !fresh && it->second != o.version())
      out.error("OT1021", "",
                cat("opset_import names the domain ", shown, " twice, with versions ", it->second,
                    " and ", o.version()));
    if (o.version() < 1 || o.version() > INT32_MAX)
      out.error("OT1021", "", cat("opset_import has version ", o.version(), " of ", shown));
    for (const Range& r : kRanges)
      if (domain == r.domain && o.version() > r.high)
        out.error("OT1021", "",
                  cat("the model needs opset ", o.version(), " of ", shown, "; this build knows ",
                      r.low, " to ", r.high),
                  "export the model with an older opset, or update onnxtrain");
  }
}

void check_source(ModelSource& source, const OpTable& ops, Findings& out) {
  check_versions(source, out);
  if (out.has_error()) return;  // everything else depends on the versions
  const Imports imports = imports_of(source.proto.opset_import());
  GraphCheck check(source, ops, out);
  NameScope main_names;
  check.graph(source.proto.graph(), main_names, {"main graph", "", "", &imports, false, 0});
  check.functions();
  check.report_unknown();
  check_training(source, ops, main_names, out);
}

namespace {

std::vector<Finding> check_all(const std::shared_ptr<ModelSource>& source, const OpTable& ops,
                               const LoadOptions& o) {
  Findings out;
  check_source(*source, ops, out);
  if (out.has_error()) return out.list;
  // the rest needs types: read the model, which finds what is left (data of tensors, functions)
  out.guard("", "model", [&] {
    LoadOptions read = o;
    read.check = false;
    read.keep_unknown = true;
    const Model m = load_source(source, ops, read);
    check_training_types(m, out);
    check_operand_types(m, out);
    check_control_flow(m, out);
    check_sizes(m, out);
  });
  return out.list;
}

}  // namespace

std::vector<Finding> check_model_file(const std::string& path, const OpTable& ops,
                                      const LoadOptions& o) {
  return check_all(read_source(path, o.limits), ops, o);
}

std::vector<Finding> check_model_bytes(std::string_view bytes, const std::string& base_dir,
                                       const OpTable& ops, const LoadOptions& o) {
  return check_all(parse_source(bytes, base_dir, o.limits), ops, o);
}

}  // namespace onnxtrain
