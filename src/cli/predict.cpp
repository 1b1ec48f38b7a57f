// predict: the main output for every row, to csv or npy.
#include "run/predict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/commands.hpp"
#include "cli/data_flags.hpp"
#include "cli/limit_flags.hpp"
#include "cli/output_file.hpp"
#include "cli/processes.hpp"
#include "core/file.hpp"
#include "data/npz_file.hpp"

namespace onnxtrain::cli {

namespace {

struct PredictFlags {
  std::string what, to;
  DataFlags data;
  LimitFlags limits;
  ProcessFlags processes;
  int64_t batch = 256;
  int threads = 0;
  bool proba = false;
};

// The scores of each row as probabilities.
void make_probabilities(run::Predictions& p) {
  if (p.to_probabilities.empty() || !dtype_is_float(p.rows.dtype()))
    usage_error("OT0038",
                cat("output '", p.output, "' holds no scores of classes: --proba does not apply"),
                "remove --proba: the numbers are written as they are");
  if (p.to_probabilities == "none") return;
  std::vector<double> v = p.rows.to_doubles();
  const int64_t rows = p.rows.rank() ? p.rows.shape()[0] : 1;
  const size_t width = rows > 0 ? v.size() / size_t(rows) : 0;
  for (size_t at = 0; at < v.size(); at += width) {
    if (p.to_probabilities == "sigmoid") {
      for (size_t k = at; k < at + width; ++k) v[k] = 1 / (1 + std::exp(-v[k]));
      continue;
    }
    const double most = *std::max_element(v.begin() + long(at), v.begin() + long(at + width));
    double sum = 0;
    for (size_t k = at; k < at + width; ++k) sum += v[k] = std::exp(v[k] - most);
    for (size_t k = at; k < at + width; ++k) v[k] /= sum;
  }
  Tensor out(DType::kFloat, p.rows.shape());
  std::transform(v.begin(), v.end(), out.as<float>(), [](double x) { return float(x); });
  p.rows = std::move(out);
}

std::string csv_field(const std::string& s) {
  if (s.find_first_of(",\"\n\t") == std::string::npos) return s;
  std::string out = "\"";
  for (char c : s) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string cell(const Tensor& t, const std::vector<double>& numbers, int64_t i) {
  if (t.dtype() == DType::kString) return csv_field(t.as<std::string>()[i]);
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", numbers[size_t(i)]);
  return text;
}

// A header, then one line per row: the file of an image, the predicted class when the output has
// classes, then all values.
std::string csv_text(const run::Predictions& p, char separator) {
  const Tensor& t = p.rows;
  const bool words = t.dtype() == DType::kString;
  const std::vector<double> v = words ? std::vector<double>() : t.to_doubles();
  const int64_t rows = t.rank() ? t.shape()[0] : 1, width = rows ? t.size() / rows : 0;
  auto name = [&](int64_t k) {
    return size_t(k) < p.classes.size() ? p.classes[size_t(k)] : std::to_string(k);
  };
  std::vector<std::string> line;
  std::string out;
  auto end_line = [&] {
    for (size_t k = 0; k < line.size(); ++k) out += (k ? std::string(1, separator) : "") + line[k];
    out += "\n";
    line.clear();
  };
  const bool named = int64_t(p.row_names.size()) == rows;
  if (named) line.push_back("file");
  if (p.has_classes || p.threshold) line.push_back("prediction");
  for (int64_t k = 0; k < width; ++k)
    line.push_back(csv_field(p.has_classes ? name(k)
                             : width == 1  ? p.output
                                           : cat(p.output, "_", k)));
  end_line();
  for (int64_t i = 0; i < rows; ++i) {
    if (named) line.push_back(csv_field(p.row_names[size_t(i)]));
    if (p.has_classes) {
      const double* row = v.data() + i * width;
      line.push_back(csv_field(name(std::max_element(row, row + width) - row)));
    }
    if (p.threshold) line.push_back(csv_field(name(v[size_t(i)] > *p.threshold ? 1 : 0)));
    for (int64_t k = 0; k < width; ++k) line.push_back(cell(t, v, i * width + k));
    end_line();
  }
  return out;
}

int predict(PredictFlags& f) {
  check_ending(f.to, {".csv", ".tsv", ".npy"}, false);
  ProgramOptions po;
  Communicator* processes = f.processes.connect(f.threads);
  const bool speaks = !processes || processes->rank() == 0;
  po.threads = f.threads;
  po.limits = f.limits.limits();
  Narrator narrator;
  run::Predictions p = run::predict(f.what, f.data.request(), f.batch, po, narrator, processes);
  disconnect_processes();
  if (!speaks) return 0;
  if (f.proba) make_probabilities(p);
  if (f.to.ends_with(".npy"))
    write_npy(f.to, p.rows);
  else if (!f.to.empty())
    write_file(f.to, csv_text(p, f.to.ends_with(".tsv") ? '\t' : ','));
  else
    std::printf("%s", csv_text(p, ',').c_str());
  if (!f.to.empty())
    say("saved", cat(f.to, "   ", with_commas(p.rows.shape()[0]),
                     p.rows.shape()[0] == 1 ? " row" : " rows"));
  return 0;
}

}  // namespace

void add_predict(Registry& r) {
  static PredictFlags f;
  CLI::App* c = r.add("predict", "predictions to csv or npy",
                      "  onnxtrain predict runs/cnn-001 --data new.npz -o pred.csv\n"
                      "  onnxtrain predict model.onnx --data new.csv -o pred.npy\n"
                      "  cat new.csv | onnxtrain predict runs/t-001 --data - --proba");
  c->add_option("RUN|MODEL", f.what, "a run folder, a checkpoint or a model")->required();
  f.data.add_to(r, c, true, false);
  c->add_option("-o,--output", f.to,
                "file.csv, file.tsv or file.npy (default: csv to standard output)");
  c->add_option("--batch,--batch-size", f.batch, "rows per batch")->check(CLI::PositiveNumber);
  c->add_option("--threads", f.threads, "0: all cores this process may use")
      ->check(CLI::NonNegativeNumber);
  c->add_flag("--proba", f.proba, "probabilities instead of scores of classes");
  f.processes.add_connection(r, c);
  f.limits.add_to(r, c);
  r.on(c, [] { return predict(f); });
}

}  // namespace onnxtrain::cli
