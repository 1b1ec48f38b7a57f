// predict: the main output for every row, to csv or npy.
#include "run/predict.hpp"

#include <algorithm>
#include <cstdio>

#include "cli/commands.hpp"
#include "cli/data_flags.hpp"
#include "cli/limit_flags.hpp"
#include "core/file.hpp"
#include "data/npz_file.hpp"

namespace onnxtrain::cli {

namespace {

struct PredictFlags {
  std::string what, to;
  DataFlags data;
  LimitFlags limits;
  int64_t batch = 256;
  int threads = 0;
};

std::string csv_field(const std::string& s) {
  if (s.find_first_of(",\"\n") == std::string::npos) return s;
  std::string out = "\"";
  for (char c : s) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

// A header, then one line per row: the predicted class when the output has classes, then all
// values.
std::string csv_text(const run::Predictions& p) {
  const Tensor& t = p.rows;
  std::vector<double> v = t.to_doubles();
  int64_t rows = t.rank() ? t.shape()[0] : 1, width = rows ? t.size() / rows : 0;
  const bool has_classes = p.has_classes;
  auto name = [&](int64_t k) {
    return size_t(k) < p.classes.size() ? p.classes[size_t(k)] : std::to_string(k);
  };
  std::string out = has_classes ? "prediction" : "";
  for (int64_t k = 0; k < width; ++k)
    out += cat(out.empty() ? "" : ",", csv_field(has_classes  ? name(k)
                                                 : width == 1 ? p.output
                                                              : cat(p.output, "_", k)));
  out += "\n";
  for (int64_t i = 0; i < rows; ++i) {
    const double* row = v.data() + i * width;
    if (has_classes) out += csv_field(name(std::max_element(row, row + width) - row)) + ",";
    for (int64_t k = 0; k < width; ++k) {
      char text[32];
      std::snprintf(text, sizeof text, "%s%.9g", k ? "," : "", row[k]);
      out += text;
    }
    out += "\n";
  }
  return out;
}

int predict(const PredictFlags& f) {
  ProgramOptions po;
  po.threads = f.threads;
  po.limits = f.limits.limits();
  const run::Predictions p = run::predict(f.what, f.data.request(), f.batch, po);
  if (f.to.ends_with(".npy"))
    write_npy(f.to, p.rows);
  else if (!f.to.empty())
    write_file(f.to, csv_text(p));
  else
    std::printf("%s", csv_text(p).c_str());
  if (!f.to.empty()) say("saved", cat(f.to, "   ", with_commas(p.rows.shape()[0]), " rows"));
  return 0;
}

}  // namespace

void add_predict(Registry& r) {
  static PredictFlags f;
  CLI::App* c = r.add("predict", "predictions to csv or npy",
                      "  onnxtrain predict runs/cnn-001 --data new.npz -o pred.csv\n"
                      "  onnxtrain predict model.onnx --data new.csv -o pred.npy");
  c->add_option("RUN|MODEL", f.what, "a run folder, a checkpoint or a model")->required();
  f.data.add_to(r, c, true, false);
  c->add_option("-o,--output", f.to, "file.csv or file.npy (default: csv to standard output)");
  c->add_option("--batch,--batch-size", f.batch, "rows per batch")->check(CLI::PositiveNumber);
  c->add_option("--threads", f.threads, "0: all cores this process may use")
      ->check(CLI::NonNegativeNumber);
  f.limits.add_to(r, c);
  r.on(c, [] { return predict(f); });
}

}  // namespace onnxtrain::cli
