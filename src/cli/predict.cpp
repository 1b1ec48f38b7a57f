// predict: the main output for every row, to csv or npy.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "cli/commands.hpp"
#include "cli/data_flags.hpp"
#include "core/file.hpp"
#include "data/npz_file.hpp"
#include "data/prefetch.hpp"
#include "engine/session.hpp"
#include "model/batch.hpp"
#include "onnx/onnx.hpp"
#include "train/run_folder.hpp"
#include "train/whole_batches.hpp"

namespace onnxtrain::cli {

namespace {

struct PredictFlags {
  std::string what, to;
  DataFlags data;
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
std::string csv_text(const Tensor& t, const Model& m, const std::string& output,
                     const std::vector<std::string>& classes) {
  std::vector<double> v = t.to_doubles();
  int64_t rows = t.rank() ? t.shape()[0] : 1, width = rows ? t.size() / rows : 0;
  auto loss = m.metadata.find("onnxtrain.loss");
  bool has_classes =
      t.rank() == 2 && width > 1 &&
      (!classes.empty() ||
       (loss != m.metadata.end() && (loss->second == "cross_entropy" || loss->second == "nll")));
  auto name = [&](int64_t k) {
    return size_t(k) < classes.size() ? classes[size_t(k)] : std::to_string(k);
  };
  std::string out = has_classes ? "prediction" : "";
  for (int64_t k = 0; k < width; ++k)
    out += cat(out.empty() ? "" : ",", csv_field(has_classes  ? name(k)
                                                 : width == 1 ? output
                                                              : cat(output, "_", k)));
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

Tensor joined(const std::vector<Tensor>& parts) {
  if (parts.empty() || parts[0].rank() == 0)
    data_error("OT2153", "the model's first output has no rows: there is nothing to write per row",
               "onnxtrain run MODEL --inputs in.npz -o out.npz");
  Shape shape = parts[0].shape();
  shape[0] = 0;
  for (const Tensor& t : parts) shape[0] += t.shape()[0];
  Tensor all(parts[0].dtype(), shape);
  char* at = static_cast<char*>(all.data());
  for (const Tensor& t : parts) {
    if (Shape(t.shape().begin() + 1, t.shape().end()) != Shape(shape.begin() + 1, shape.end()))
      data_error("OT2153", "the rows of the model's first output have different shapes");
    if (t.bytes()) std::memcpy(at, t.data(), t.bytes());
    at += t.bytes();
  }
  return all;
}

int predict(const PredictFlags& f) {
  std::string path = std::filesystem::is_directory(f.what) ? RunFolder(f.what).model() : f.what;
  auto model = std::make_shared<const Model>(load_model(path, all_ops()));
  OpenOptions open;
  open.part = DataPart::kTest;
  open.csv.no_target = f.data.target.empty();
  open.csv.target = f.data.target;
  FeedOptions feed = f.data.feed_options();
  options_from_metadata(*model, feed, open.csv);
  for (const auto& name : model->input_names()) {  // images take the size of the input
    const Shape dims = input_spec(model->main.value(model->main.find(name))).dims;
    if (open.x_shape.empty() && !dims.empty() &&
        std::all_of(dims.begin() + 1, dims.end(), [](int64_t n) { return n > 0; }))
      open.x_shape.assign(dims.begin() + 1, dims.end());
  }
  require_rows_first(model->main);
  Dataset data = open_dataset(f.data.data, open);
  std::vector<std::string> names = model->input_names();
  auto columns = match_columns(data, names, {}, feed.map, true);
  std::vector<std::string> wanted;
  for (const auto& [name, column] : columns) wanted.push_back(column);
  data = data.used(wanted);
  std::vector<ColumnPtr> fed;
  for (const auto& name : names) {
    ValueId v = model->main.find(name);
    fed.push_back(
        adapt_input(data, columns.at(name), input_spec(model->main.value(v)), feed.adapt).column);
  }
  ProgramOptions po;
  po.threads = f.threads;
  Session session(model, po);
  const int64_t fixed = fixed_batch(model->main);
  const int64_t most = fixed > 0 ? fixed : f.batch;
  Prefetcher prefetch(fed, std::clamp<int64_t>(data.rows(), 1, most), 1);
  std::vector<int64_t> order(size_t(data.rows()));
  std::iota(order.begin(), order.end(), int64_t(0));
  prefetch.start(order);
  std::vector<Tensor> parts;
  while (const Batch* b = prefetch.next()) {
    Feeds feeds;
    for (size_t k = 0; k < names.size(); ++k)
      feeds[names[k]] = b->rows < fixed ? filled_up(b->tensors[k], fixed) : b->tensors[k];
    parts.push_back(first_rows(std::get<Tensor>(session.run(feeds)[0].second), b->rows));
  }
  Tensor all = joined(parts);
  std::string output = model->main.value_name(model->main.outputs[0]);
  if (f.to.ends_with(".npy"))
    write_npy(f.to, all);
  else if (!f.to.empty())
    write_file(f.to, csv_text(all, *model, output, feed.classes));
  else
    std::printf("%s", csv_text(all, *model, output, feed.classes).c_str());
  if (!f.to.empty()) say("saved", cat(f.to, "   ", with_commas(all.shape()[0]), " rows"));
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
  c->add_option("--batch", f.batch, "rows per batch")->check(CLI::PositiveNumber);
  c->add_option("--threads", f.threads, "0: all cores this process may use")
      ->check(CLI::NonNegativeNumber);
  r.on(c, [] { return predict(f); });
}

}  // namespace onnxtrain::cli
