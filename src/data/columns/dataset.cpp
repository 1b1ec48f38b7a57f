// Datasets over columns, and words for messages about them.
#include "data/columns/dataset.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace onnxtrain {
namespace {

constexpr const char* kNoRows = "save at least one example; was the array cut or filtered too far?";

const std::vector<std::string>& find_names(
    const std::map<std::string, std::vector<std::string>>& names, const std::string& column) {
  static const std::vector<std::string> none;
  const auto it = names.find(column);
  return it == names.end() ? none : it->second;
}

}  // namespace

Dataset Dataset::from_tensors(const std::vector<std::pair<std::string, Tensor>>& arrays) {
  Dataset d("arrays", "in memory");
  for (const auto& [name, tensor] : arrays) d.add_array(name, memory_column(tensor));
  return d;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param)
void Dataset::add(std::string name, ColumnPtr column) {
  if (!columns_.empty() && column->rows() != rows_)
    data_error("OT2103",
               cat("arrays have different numbers of rows: '", names_[0], "' has ",
                   with_commas(rows_), ", '", name, "' has ", with_commas(column->rows())),
               "each array needs one row per example; save them again together");
  enter(name, std::move(column));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param)
void Dataset::add_array(std::string name, ColumnPtr column) {
  arrays_.push_back(name);
  enter(name, std::move(column));
}

void Dataset::enter(const std::string& name, ColumnPtr column) {
  if (std::find(names_.begin(), names_.end(), name) != names_.end())
    data_error("OT2108", cat("two arrays are named '", name, "'"),
               "give every array a name of its own");
  rows_ = std::max(rows_, column->rows());
  columns_.emplace(name, std::move(column));
  names_.push_back(name);
}

void Dataset::add_unreadable(const std::string& name, Error why) {
  names_.push_back(name);
  unreadable_.emplace(name, std::move(why));
}

void Dataset::set(const std::string& name, ColumnPtr column) {
  if (!has(name)) return add(name, std::move(column));
  OT_ASSERT(column->rows() == columns_[name]->rows());
  columns_[name] = std::move(column);
}

const ColumnPtr& Dataset::column(const std::string& name) const {
  const auto it = columns_.find(name);
  if (it != columns_.end()) return it->second;
  if (const auto bad = unreadable_.find(name); bad != unreadable_.end()) throw Error(bad->second);
  const std::string near = closest(name, names_);
  data_error("OT2105",
             cat("data '", source_, "' has no column '", name, "'; it has ", listed(names_)),
             near.empty() ? "name one of these" : cat("did you mean '", near, "'?"));
}

void Dataset::gather(const std::string& name, std::span<const int64_t> rows, Tensor& out) const {
  const Column& c = *column(name);
  Shape shape{int64_t(rows.size())};
  shape.insert(shape.end(), c.row_shape().begin(), c.row_shape().end());
  if (out.dtype() != c.dtype() || out.shape() != shape) out = Tensor(c.dtype(), std::move(shape));
  c.read(rows, out.data());
}

Tensor Dataset::gather_all(const std::string& name) const {
  std::vector<int64_t> rows(static_cast<size_t>(rows_));
  std::iota(rows.begin(), rows.end(), int64_t(0));
  Tensor out;
  gather(name, rows, out);
  return out;
}

Dataset Dataset::subset(std::vector<int64_t> rows) const {
  const auto shared = std::make_shared<const std::vector<int64_t>>(std::move(rows));
  Dataset d = *this;
  d.rows_ = int64_t(shared->size());
  for (auto& [name, column] : d.columns_) column = subset_column(column, shared);
  if (!row_names_.empty()) {
    d.row_names_.clear();
    for (int64_t row : *shared) d.row_names_.push_back(row_names_[size_t(row)]);
  }
  return d;
}

Dataset Dataset::used(const std::vector<std::string>& names) const {
  Dataset d(source_, format_);
  d.notes_ = notes_;
  d.targets_ = targets_;
  d.target_column_ = target_column_;
  d.target_forms_ = target_forms_;
  d.target_names_ = target_names_;
  d.dropped_ = dropped_;
  d.row_names_ = row_names_;
  d.reading_ = reading_;
  std::vector<std::string> rest;
  for (const std::string& name : names_) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      if (columns_.count(name) == 0 || std::count(arrays_.begin(), arrays_.end(), name) > 0)
        rest.push_back(name);
      continue;
    }
    d.add(name, column(name));
    d.class_names_[name] = class_names(name);
    d.feature_names_[name] = feature_names(name);
  }
  if (d.rows() == 0)
    data_error("OT2101", cat("data '", source_, "' has no rows in ", listed(d.columns())), kNoRows);
  if (!rest.empty())
    d.add_note(cat("not used: ", listed(rest), "   (no input of the model has ",
                   rest.size() == 1 ? "this name" : "these names", "; --map to change)"));
  return d;
}

const std::vector<std::string>& Dataset::class_names(const std::string& column) const {
  return find_names(class_names_, column);
}

void Dataset::set_class_names(const std::string& column, std::vector<std::string> names) {
  class_names_[column] = std::move(names);
}

const std::vector<std::string>& Dataset::feature_names(const std::string& column) const {
  return find_names(feature_names_, column);
}

void Dataset::set_feature_names(const std::string& column, std::vector<std::string> names) {
  feature_names_[column] = std::move(names);
}

namespace {

// "x_train" with tag "train" -> "x"; "" when the name has no such tag.
std::string without_tag(const std::string& name, const std::string& tag) {
  if (name.starts_with(tag + "_")) return name.substr(tag.size() + 1);
  if (name.ends_with("_" + tag)) return name.substr(0, name.size() - tag.size() - 1);
  return "";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> select_part(const std::vector<std::string>& names,
                                                             DataPart part,
                                                             const std::string& source) {
  static const std::string kTags[] = {"train", "test", "valid", "val"};
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> by_tag;
  for (const std::string& name : names) {
    std::string tag, bare;
    for (const std::string& t : kTags)
      if (bare.empty()) bare = without_tag(name, t), tag = bare.empty() ? "" : t;
    by_tag[tag].emplace_back(bare.empty() ? name : bare, name);
  }
  const bool tagged = by_tag.size() > by_tag.count("");
  if (!tagged) return by_tag[""];
  const std::vector<std::string> order = part == DataPart::kTrain
                                             ? std::vector<std::string>{"train"}
                                             : std::vector<std::string>{"test", "valid", "val"};
  for (const std::string& tag : order)
    if (by_tag.count(tag) > 0) return by_tag[tag];
  if (by_tag.count("") > 0) return by_tag[""];
  data_error("OT2109",
             cat("'", source, "' has no ", part == DataPart::kTrain ? "train" : "test",
                 " part; it has ", listed(names)),
             "leave --part out");
}

std::string describe_column(const Column& c) {
  const bool image = c.dtype() == DType::kUint8 && c.row_shape().size() >= 2;
  std::string out = cat(with_commas(c.rows()), image ? " image" : " row",
                        c.rows() == 1 ? " " : "s ", type_text(c.dtype()));
  if (!c.row_shape().empty()) out += " " + to_string(c.row_shape());
  return out;
}

std::string type_text(DType t) {
  if (t == DType::kFloat) return "float32";
  if (t == DType::kDouble) return "float64";
  return std::string(dtype_name(t));
}

std::string rounded_count(int64_t n) {
  char text[32];
  const double v = double(n);
  if (n < 1000) return std::to_string(n);
  if (n < 1000000)
    std::snprintf(text, sizeof text, "%.1fk", v / 1e3);
  else
    std::snprintf(text, sizeof text, "%.1fM", v / 1e6);
  return text;
}

std::string listed(const std::vector<std::string>& names, size_t most) {
  std::vector<std::string> quoted;
  quoted.reserve(names.size());
  for (const std::string& name : names) quoted.push_back("'" + name + "'");
  return listed_plain(quoted, most);
}

std::string listed_plain(const std::vector<std::string>& parts, size_t most) {
  if (parts.empty()) return "none";
  std::string out;
  for (size_t i = 0; i < parts.size() && i < most; ++i) out += (i > 0 ? ", " : "") + parts[i];
  if (parts.size() > most) out += cat(" and ", parts.size() - most, " more");
  return out;
}

}  // namespace onnxtrain
