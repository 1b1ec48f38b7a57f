// Which column of the data feeds which input of the model.
#include <algorithm>
#include <filesystem>
#include <set>

#include "core/shell.hpp"
#include "data/open.hpp"

namespace onnxtrain {
namespace {

using Names = std::vector<std::string>;

const Names kUsualInputs = {"x", "X", "images", "image", "data", "features", "inputs", "input"};
const Names kUsualLabels = {"y", "Y", "labels", "label", "targets", "target", "classes"};

class Matcher {
 public:
  Matcher(const Dataset& data, const std::map<std::string, std::string>& map) : data_(data) {
    for (const auto& [input, column] : map) {
      data.column(column);  // throws with a suggestion
      take(input, column);
    }
  }

  void equal_names(const Names& wanted) {
    for (const std::string& name : wanted)
      if (!done(name) && data_.has(name)) take(name, name);
  }

  // The usual names, when only one of `wanted` is open; x0, x1, ... when several are.
  void usual_names(const Names& wanted, const Names& usual) {
    const Names open = open_of(wanted);
    for (const std::string& name : usual)
      if (open.size() == 1 && !done(open[0]) && data_.has(name) && used_.count(name) == 0)
        take(open[0], name);
    for (size_t i = 0; i < open.size(); ++i) {
      const std::string numbered = usual[0] + std::to_string(i);
      if (!done(open[i]) && data_.has(numbered)) take(open[i], numbered);
    }
  }

  // numpy.savez(path, x, y) names them arr_0, arr_1: inputs first, then labels.
  void numbered(const Names& inputs, const Names& labels) {
    size_t i = 0;
    for (const Names* names : {&inputs, &labels})
      for (const std::string& name : *names) {
        const std::string column = cat("arr_", i++);
        if (!done(name) && data_.has(column) && used_.count(column) == 0) take(name, column);
      }
  }

  // One input and one column left: they belong together.
  void leftover(const Names& wanted) {
    Names columns;
    for (const std::string& c : data_.columns())
      if (used_.count(c) == 0 && !is(kUsualLabels, c)) columns.push_back(c);
    const Names open = open_of(wanted);
    if (open.size() == 1 && columns.size() == 1) take(open[0], columns[0]);
  }

  Names open_of(const Names& wanted) const {
    Names open;
    for (const std::string& name : wanted)
      if (!done(name)) open.push_back(name);
    return open;
  }

  std::map<std::string, std::string> result;

 private:
  static bool is(const Names& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  bool done(const std::string& name) const { return result.count(name) > 0; }
  void take(const std::string& name, const std::string& column) {
    result[name] = column;
    used_.insert(column);
  }

  const Dataset& data_;
  std::set<std::string> used_;
};

// x.npy alone has no labels; its folder may have them. "": the data is something else.
std::string folder_hint(const Dataset& data) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (data.format() != "npy" || !fs::is_regular_file(data.source(), none)) return {};
  const fs::path folder = fs::path(data.source()).parent_path();
  const std::string shown = folder.empty() ? "." : folder.string();
  size_t arrays = 0;
  for (const auto& entry : fs::directory_iterator(shown, none))
    arrays += entry.path().extension() == ".npy" ? 1 : 0;
  return cat("x.npy and y.npy, or X_train.npy and y_train.npy, are read together from their folder",
             arrays > 1 ? "" : "; save the labels there, too", ":  --data ", shell_word(shown));
}

}  // namespace

std::map<std::string, std::string> match_columns(const Dataset& data, const Names& inputs,
                                                 const Names& labels,
                                                 const std::map<std::string, std::string>& map,
                                                 bool labels_optional) {
  Names all = inputs;
  all.insert(all.end(), labels.begin(), labels.end());
  for (const auto& [name, column] : map) {
    if (std::find(all.begin(), all.end(), name) != all.end()) continue;
    const std::string near = closest(name, all);
    usage_error("OT2106",
                cat("--map ", name, "=", column, ": the model has no input '", name, "'; it has ",
                    listed(all)),
                cat("--map ", near.empty() && !all.empty() ? all[0] : near, "=", column));
  }
  Matcher m(data, map);
  m.equal_names(inputs);
  m.equal_names(labels);
  m.usual_names(inputs, kUsualInputs);
  m.usual_names(labels, kUsualLabels);
  m.numbered(inputs, labels);
  m.leftover(inputs);
  if (!labels_optional && m.open_of(inputs).empty()) m.leftover(labels);
  const Names open = m.open_of(labels_optional ? inputs : all);
  if (open.empty()) return m.result;
  // a column that feeds another input already is no advice
  std::string spare;
  for (const std::string& c : data.columns())
    if (spare.empty() && std::find(all.begin(), all.end(), c) == all.end() &&
        std::none_of(m.result.begin(), m.result.end(),
                     [&](const auto& e) { return e.second == c; }))
      spare = c;
  data_error("OT2106",
             cat("no column of data '", data.source(), "' belongs to input '", open[0],
                 "' of the model; columns are ", listed(data.columns()), ", inputs and labels are ",
                 listed(all)),
             data.format() == "images"
                 ? std::string("images lie in folders named after their classes: give the folder "
                               "that holds these:  --data FOLDER")
             : spare.empty() && !folder_hint(data).empty() ? folder_hint(data)
             : spare.empty() ? cat("all columns are in use: save one more, named '", open[0], "'")
                             : cat("say which: --map ", open[0], "=", spare));
}

std::string matched_by_order(const std::map<std::string, std::string>& columns, const Names& inputs,
                             const std::map<std::string, std::string>& map) {
  if (inputs.size() < 2) return {};
  std::string pairs;
  for (const std::string& name : inputs) {
    const auto at = columns.find(name);
    if (at == columns.end() || at->second == name || map.count(name) != 0) continue;
    pairs += cat(pairs.empty() ? "" : ", ", "'", at->second, "' feeds '", name, "'");
  }
  return pairs.empty() ? pairs : cat(pairs, ", in this order   (--map INPUT=NAME to change)");
}

}  // namespace onnxtrain
