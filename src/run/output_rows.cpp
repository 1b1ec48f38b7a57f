// Rows of outputs.
#include "run/output_rows.hpp"

#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include "convert/analysis/output_range.hpp"
#include "distributed/gather_tensors.hpp"
#include "model/trained_outputs.hpp"
#include "run/data/data_spec.hpp"
#include "run/data/target_check.hpp"
#include "run/data/whole_batches.hpp"

namespace onnxtrain::run {

namespace {

// A map for each row (ZipMap) as numbers [rows, keys]; false when it is anything else.
bool rows_of_maps(const Sequence& s, int64_t rows, Tensor& out, std::vector<std::string>& keys) {
  if (int64_t(s.items.size()) < rows || rows == 0) return false;
  std::vector<double> v;
  for (int64_t i = 0; i < rows; ++i) {
    const auto* map = std::get_if<std::shared_ptr<MapValue>>(&s.items[size_t(i)]);
    if (!map) return false;
    std::vector<std::string> here;
    bool numbers = true;
    std::visit(
        [&](const auto& items) {
          for (const auto& [key, value] : items) {
            const Tensor* t = std::get_if<Tensor>(&value);
            numbers = numbers && t && t->size() == 1 && t->dtype() != DType::kString;
            if (!numbers) return;
            here.push_back(cat(key));
            v.push_back(t->to_doubles()[0]);
          }
        },
        (*map)->items);
    if (keys.empty()) keys = here;
    if (!numbers || keys != here) return false;
  }
  if (keys.empty()) return false;
  out = Tensor(DType::kFloat, {rows, int64_t(keys.size())});
  std::transform(v.begin(), v.end(), out.as<float>(), [](double x) { return float(x); });
  return true;
}

Tensor joined(const std::vector<Tensor>& parts) {
  Shape shape = parts[0].shape();
  shape[0] = 0;
  for (const Tensor& t : parts) shape[0] += t.shape()[0];
  Tensor all(parts[0].dtype(), shape);
  int64_t at = 0;
  for (const Tensor& t : parts) {
    if (t.dtype() == DType::kString)
      std::copy_n(t.as<std::string>(), t.size(), all.as<std::string>() + at);
    else if (t.bytes())
      std::memcpy(static_cast<char*>(all.data()) + size_t(at) * dtype_size(t.dtype()), t.data(),
                  t.bytes());
    at += t.size();
  }
  return all;
}

bool same_rows(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.rank() == b.rank() &&
         std::equal(a.shape().begin() + 1, a.shape().end(), b.shape().begin() + 1);
}

// The loss that an output was trained with: of a model with one loss, or with one per output.
std::string loss_of(const Model& m, const std::string& output) {
  const auto several = m.metadata.find(kLossesKey);
  if (several != m.metadata.end()) {
    const auto j = nlohmann::json::parse(several->second, nullptr, false);
    const auto it = j.is_object() ? j.find(output) : j.end();
    if (j.is_object() && it != j.end() && it->is_string()) return *it;
  }
  return {};
}

// Where one score per row turns from class 0 to class 1: of a probability, or of a score that a
// sigmoid in the loss makes a probability of.
std::optional<double> threshold_of(const std::string& kind, const OutputRange& range) {
  if (kind != "bce" && kind != "bce_logits" && kind != "hinge") return {};
  if (range.in(0, 1)) return 0.5;
  return kind == "bce" ? 0.5 : 0.0;
}

// The first output, but scores [N,classes] rather than a label per row.
size_t first_scores(const Predictions& p) {
  if (dtype_is_float(p.outputs[0].rows.dtype())) return 0;
  for (size_t k = 1; k < p.outputs.size(); ++k)
    if (dtype_is_float(p.outputs[k].rows.dtype()) && p.outputs[k].rows.rank() == 2) return k;
  return 0;
}

}  // namespace

OutputRows::OutputRows(const Graph& main) {
  for (ValueId v : main.outputs) all_.push_back({main.value_name(v), {}, {}, {}});
}

void OutputRows::add(const std::vector<std::pair<std::string, Value>>& results, int64_t fed,
                     int64_t rows) {
  for (size_t k = 0; k < all_.size(); ++k) {
    One& o = all_[k];
    if (!o.why.empty()) continue;
    const Tensor* t = std::get_if<Tensor>(&results[k].second);
    Tensor of_maps;
    const auto* list = std::get_if<std::shared_ptr<Sequence>>(&results[k].second);
    if (list && *list && rows_of_maps(**list, rows, of_maps, o.columns))
      t = &of_maps;
    else if (!t)
      o.why = "is no tensor";
    else if (t->rank() == 0 || t->shape()[0] != fed)
      o.why = cat("is ", to_string(t->shape()), " for ", fed, fed == 1 ? " row" : " rows",
                  ": no value per row");
    else if (!o.parts.empty() && !same_rows(o.parts[0], *t))
      o.why = "has rows of different shapes";
    if (o.why.empty()) o.parts.push_back(first_rows(*t, rows));
  }
}

void OutputRows::gather(Communicator& c) {
  auto texts = [](const std::vector<std::string>& words) {
    Tensor t(DType::kString, {int64_t(words.size())});
    std::copy(words.begin(), words.end(), t.as<std::string>());
    return t;
  };
  for (One& o : all_) {
    std::vector<Tensor> mine{texts({o.why}), texts(o.columns)};
    mine.insert(mine.end(), o.parts.begin(), o.parts.end());
    const std::vector<std::vector<Tensor>> all = gather_tensors(c, mine);
    o.parts.clear();
    size_t most = 0;
    for (const std::vector<Tensor>& of_rank : all) {
      if (o.why.empty()) o.why = of_rank[0].as<std::string>()[0];
      const std::string* words = of_rank[1].as<std::string>();
      if (o.columns.empty()) o.columns.assign(words, words + of_rank[1].size());
      most = std::max(most, of_rank.size());
    }
    for (size_t k = 2; k < most; ++k)
      for (const std::vector<Tensor>& of_rank : all)
        if (k < of_rank.size()) {
          if (!o.parts.empty() && !same_rows(o.parts[0], of_rank[k]))
            o.why = "has rows of different shapes";
          o.parts.push_back(of_rank[k]);
        }
  }
}

std::vector<PredictedOutput> OutputRows::finish(Observer& observer) {
  std::vector<PredictedOutput> out;
  std::string left_out;
  for (One& o : all_) {
    if (o.why.empty() && o.parts.empty()) o.why = "has no rows";
    if (!o.why.empty()) {
      left_out += cat(left_out.empty() ? "" : "; ", "output '", o.name, "' ", o.why);
      continue;
    }
    PredictedOutput p;
    p.name = o.name;
    p.rows = joined(o.parts);
    p.columns = std::move(o.columns);
    out.push_back(std::move(p));
  }
  if (out.empty())
    data_error("OT2153", cat("there is nothing to write per row: ", left_out),
               "onnxtrain run MODEL --inputs in.npz -o out.npz");
  if (!left_out.empty()) observer.on_note("left out", left_out);
  return out;
}

OutputMeaning meaning(const Model& m, const std::string& output, const Shape& rows, bool floats,
                      bool main, std::vector<std::string> classes) {
  OutputMeaning o;
  o.classes = std::move(classes);
  std::string loss = loss_of(m, output);
  if (loss.empty() && main) loss = loss_kind(m);
  const bool row_of_scores = rows.size() == 2 && rows[0] > 0 && rows[1] > 1 && floats;
  o.has_classes = row_of_scores && (!o.classes.empty() || loss == "cross_entropy" || loss == "nll");
  const OutputRange range = output_range(m.main, m.main.find(output));
  const bool one = loss.starts_with("bce");
  const bool one_score = !rows.empty() && num_elements(rows) == rows[0] && floats;
  const bool of_two = one_score && o.classes.size() == 2;
  if (range.in(0, 1) && (o.has_classes || one || of_two))
    o.to_probabilities = "none";
  else if (o.has_classes || one)
    o.to_probabilities = one ? "sigmoid" : "softmax";
  if (of_two || (one_score && o.classes.empty() && one)) o.threshold = threshold_of(loss, range);
  return o;
}

void describe_outputs(const Model& m, const std::vector<std::string>& classes, Predictions& p) {
  p.main = first_scores(p);
  const auto others = data_spec(m.metadata).target_classes;  // outputs have the columns' names
  const auto trained = m.metadata.find("onnxtrain.output");
  for (size_t k = 0; k < p.outputs.size() && trained != m.metadata.end(); ++k)
    if (p.outputs[k].name == trained->second) p.main = k;
  for (size_t k = 0; k < p.outputs.size(); ++k) {
    PredictedOutput& o = p.outputs[k];
    const auto own = others.find(o.name);
    const auto names = own != others.end() ? own->second
                       : k == p.main       ? classes
                                           : std::vector<std::string>();
    static_cast<OutputMeaning&>(o) =
        meaning(m, o.name, o.rows.shape(), dtype_is_float(o.rows.dtype()) && o.columns.empty(),
                k == p.main, names);
    if (o.classes.empty()) o.threshold.reset();  // there is no name to write
  }
}

}  // namespace onnxtrain::run
