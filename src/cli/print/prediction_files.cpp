// How predictions are written.
#include "cli/print/prediction_files.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text.hpp"
#include "data/arrays/npz_file.hpp"

namespace onnxtrain::cli {

namespace {

using nlohmann::ordered_json;
using run::PredictedOutput;

std::string csv_field(const std::string& s) {
  if (s.find_first_of(",;\"\n\r\t") == std::string::npos) return s;
  std::string out = "\"";
  for (char c : s) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

// An output with its numbers at hand.
struct Written {
  const PredictedOutput* o;
  std::vector<double> numbers;  // unless it is text
  int64_t rows, width;
  std::vector<std::string> columns;
  std::string prediction;  // name of the column with the predicted class; empty: none

  std::string class_name(int64_t k) const {
    return size_t(k) < o->classes.size() ? o->classes[size_t(k)] : std::to_string(k);
  }
  std::string predicted(int64_t row) const {
    const double* v = numbers.data() + row * width;
    if (o->threshold) return class_name(*v > *o->threshold ? 1 : 0);
    return class_name(std::max_element(v, v + width) - v);
  }
  std::string cell(int64_t i) const {
    if (o->rows.dtype() == DType::kString) return csv_field(o->rows.as<std::string>()[i]);
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", numbers[size_t(i)]);
    return text;
  }
};

Written written(const run::Predictions& p, size_t k) {
  const PredictedOutput& o = p.outputs[k];
  Written w{&o, {}, o.rows.shape()[0], 0, {}, {}};
  if (o.rows.dtype() != DType::kString) w.numbers = o.rows.to_doubles();
  w.width = w.rows > 0 ? o.rows.size() / w.rows : 0;
  const bool main = k == p.main;
  const std::string prefix = main ? std::string() : o.name + "_";
  if (o.has_classes || o.threshold) w.prediction = prefix + "prediction";
  for (int64_t c = 0; c < w.width; ++c) {
    if (!o.columns.empty())
      w.columns.push_back(cat(o.name, "_", o.columns[size_t(c)]));
    else if (o.has_classes)
      w.columns.push_back(prefix + w.class_name(c));
    else
      w.columns.push_back(w.width == 1 ? o.name : cat(o.name, "_", c));
  }
  return w;
}

// All outputs; columns of one name get that of their output in front.
std::vector<Written> all_written(const run::Predictions& p) {
  std::vector<Written> all;
  for (size_t k = 0; k < p.outputs.size(); ++k) all.push_back(written(p, k));
  std::multiset<std::string> names{"file"};
  for (const Written& w : all) {
    names.insert(w.columns.begin(), w.columns.end());
    names.insert(w.prediction);
  }
  Written& main = all[p.main];
  const bool twice = std::any_of(main.columns.begin(), main.columns.end(),
                                 [&](const std::string& c) { return names.count(c) > 1; });
  if (twice && all.size() > 1 && main.o->has_classes)
    for (std::string& c : main.columns) c = main.o->name + "_" + c;
  return all;
}

ordered_json row_json(const Written& w, const Shape& shape, size_t axis, int64_t& at) {
  if (axis == shape.size()) {
    const int64_t i = at++;
    if (w.o->rows.dtype() == DType::kString) return w.o->rows.as<std::string>()[i];
    const double v = w.numbers[size_t(i)];
    if (dtype_is_integer(w.o->rows.dtype())) return int64_t(v);
    if (w.o->rows.dtype() == DType::kBool) return v != 0;
    if (w.o->rows.dtype() == DType::kFloat) return std::isfinite(v) ? ordered_json(v) : nullptr;
    return v;
  }
  ordered_json list = ordered_json::array();
  for (int64_t k = 0; k < shape[axis]; ++k) list.push_back(row_json(w, shape, axis + 1, at));
  return list;
}

Tensor texts(const std::vector<std::string>& list) {
  Tensor t(DType::kString, {int64_t(list.size())});
  std::copy(list.begin(), list.end(), t.as<std::string>());
  return t;
}

std::vector<std::string> predictions_of(const Written& w) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < w.rows && !w.prediction.empty(); ++i) out.push_back(w.predicted(i));
  return out;
}

}  // namespace

std::string csv_text(const run::Predictions& p, char separator) {
  const std::vector<Written> all = all_written(p);
  const int64_t rows = all[0].rows;
  std::vector<std::string> line;
  std::string out;
  auto end_line = [&] {
    for (size_t k = 0; k < line.size(); ++k) out += (k ? std::string(1, separator) : "") + line[k];
    out += "\n";
    line.clear();
  };
  const bool named = int64_t(p.row_names.size()) == rows;
  if (named) line.push_back("file");
  if (!all[p.main].prediction.empty()) line.push_back("prediction");
  for (size_t k = 0; k < all.size(); ++k) {
    if (k != p.main && !all[k].prediction.empty()) line.push_back(csv_field(all[k].prediction));
    for (const std::string& c : all[k].columns) line.push_back(csv_field(c));
  }
  end_line();
  for (int64_t i = 0; i < rows; ++i) {
    if (named) line.push_back(csv_field(p.row_names[size_t(i)]));
    if (!all[p.main].prediction.empty()) line.push_back(csv_field(all[p.main].predicted(i)));
    for (size_t k = 0; k < all.size(); ++k) {
      if (k != p.main && !all[k].prediction.empty()) line.push_back(csv_field(all[k].predicted(i)));
      for (int64_t c = 0; c < all[k].width; ++c) line.push_back(all[k].cell(i * all[k].width + c));
    }
    end_line();
  }
  return out;
}

std::string json_text(const run::Predictions& p) {
  const std::vector<Written> all = all_written(p);
  ordered_json j{{"rows", all[0].rows}};
  for (const Written& w : all) {
    int64_t at = 0;
    j["outputs"][w.o->name] = row_json(w, w.o->rows.shape(), 0, at);
    if (!w.o->columns.empty()) j["columns"][w.o->name] = w.o->columns;
  }
  if (!p.row_names.empty()) j["file"] = p.row_names;
  for (const Written& w : all)
    if (!w.prediction.empty()) j[w.prediction] = predictions_of(w);
  if (!all[p.main].o->classes.empty()) j["classes"] = all[p.main].o->classes;
  return j.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string json_summary(const run::Predictions& p, const std::string& saved) {
  ordered_json j{{"rows", p.outputs[0].rows.shape()[0]}, {"saved", saved}};
  for (const PredictedOutput& o : p.outputs) j["outputs"][o.name] = o.rows.shape();
  if (!p.outputs[p.main].classes.empty()) j["classes"] = p.outputs[p.main].classes;
  return j.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void write_predictions_npz(const std::string& path, const run::Predictions& p) {
  NamedTensors arrays;
  std::set<std::string> names;
  for (const PredictedOutput& o : p.outputs) {
    arrays.emplace_back(o.name, o.rows);
    names.insert(o.name);
  }
  for (const Written& w : all_written(p))
    if (!w.prediction.empty() && names.insert(w.prediction).second)
      arrays.emplace_back(w.prediction, texts(predictions_of(w)));
  if (!p.row_names.empty() && names.insert("file").second)
    arrays.emplace_back("file", texts(p.row_names));
  write_npz(path, arrays);
}

}  // namespace onnxtrain::cli
