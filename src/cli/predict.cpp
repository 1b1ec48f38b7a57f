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
#include "onnx/onnx.hpp"
#include "train/run_folder.hpp"

namespace onnxtrain::cli {

namespace {

std::string csv_rows(const Tensor& t) {
  std::vector<double> v = t.to_doubles();
  int64_t rows = t.rank() ? t.shape()[0] : 1, width = rows ? t.size() / rows : 0;
  std::string out;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < width; ++k) out += cat(k ? "," : "", float(v[size_t(i * width + k)]));
    out += "\n";
  }
  return out;
}

int predict(const std::string& what, const DataFlags& f, const std::string& to, int64_t batch) {
  std::string path = std::filesystem::is_directory(what) ? RunFolder(what).model() : what;
  auto model = std::make_shared<const Model>(load_model(path, all_ops()));
  OpenOptions open;
  open.part = DataPart::kTest;
  open.csv.no_target = f.target.empty();
  open.csv.target = f.target;
  for (const auto& name : model->input_names()) {  // pictures take the size of the input
    const Shape dims = input_spec(model->main.value(model->main.find(name))).dims;
    if (open.x_shape.empty() && !dims.empty() &&
        std::all_of(dims.begin() + 1, dims.end(), [](int64_t n) { return n > 0; }))
      open.x_shape.assign(dims.begin() + 1, dims.end());
  }
  Dataset data = open_dataset(f.data, open);
  FeedOptions feed = f.feed_options();
  std::vector<std::string> names = model->input_names();
  auto columns = match_columns(data, names, {}, feed.map, true);
  std::vector<ColumnPtr> fed;
  for (const auto& name : names) {
    ValueId v = model->main.find(name);
    fed.push_back(
        adapt_input(data, columns.at(name), input_spec(model->main.value(v)), feed.adapt).column);
  }
  Session session(model);
  Prefetcher prefetch(fed, batch, 1);
  std::vector<int64_t> order(size_t(data.rows()));
  std::iota(order.begin(), order.end(), int64_t(0));
  prefetch.start(order);
  std::vector<Tensor> parts;
  while (const Batch* b = prefetch.next()) {
    Feeds feeds;
    for (size_t k = 0; k < names.size(); ++k) feeds[names[k]] = b->tensors[k];
    parts.push_back(std::get<Tensor>(session.run(feeds)[0].second));
  }
  Shape shape = parts[0].shape();
  shape[0] = 0;
  for (const Tensor& t : parts) shape[0] += t.shape()[0];
  Tensor all(parts[0].dtype(), shape);
  char* at = static_cast<char*>(all.data());
  for (const Tensor& t : parts) {
    std::memcpy(at, t.data(), t.bytes());
    at += t.bytes();
  }
  if (to.ends_with(".npy"))
    write_npy(to, all);
  else if (!to.empty())
    write_file(to, csv_rows(all));
  else
    std::printf("%s", csv_rows(all).c_str());
  if (!to.empty()) say("saved", cat(to, "   ", with_commas(shape[0]), " rows"));
  return 0;
}

}  // namespace

void add_predict(Registry& r) {
  static std::string what, to;
  static DataFlags data;
  static int64_t batch = 256;
  CLI::App* c = r.add("predict", "predictions to csv or npy",
                      "  onnxtrain predict runs/cnn-001 --data new.npz -o pred.csv");
  c->add_option("RUN|MODEL", what)->required();
  data.add_to(c);
  c->add_option("-o,--output", to, "file.csv or file.npy (default: csv to standard output)");
  c->add_option("--batch", batch);
  r.on(c, [] { return predict(what, data, to, batch); });
}

}  // namespace onnxtrain::cli
