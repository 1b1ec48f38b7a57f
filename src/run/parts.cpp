// Data of a run.
#include "run/parts.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/text.hpp"
#include "data/sampler.hpp"

namespace onnxtrain::run {

namespace {

// The column that --target names feeds the only target of the model, whatever other columns are
// called. Tables, the only data that it is for, keep it as 'y'.
void obey_target(const std::string& target, const Dataset& data, const Model& m,
                 const std::vector<ValueDef>& inputs, FeedOptions& feed) {
  if (target.empty()) return;
  std::vector<std::string> targets;
  for (const ValueDef& d : inputs)
    if (is_target(m, d.name)) targets.push_back(d.name);
  if (targets.size() != 1 || feed.map.count(targets[0]) != 0) return;
  if (data.has("y")) feed.map[targets[0]] = "y";
}

}  // namespace

LoadedData load_data(const std::string& spec, const DataRequest& q, const Model& m,
                     const std::vector<ValueDef>& inputs, DataPart part, bool like_trained) {
  OpenOptions open;
  open.part = part;
  open.csv.target = q.target;
  FeedOptions feed = q.feed;
  if (like_trained) options_from_metadata(m, feed, open.csv);
  describe_inputs(m, inputs, open);
  const Dataset data = open_dataset(spec, open);
  obey_target(open.csv.target, data, m, inputs, feed);
  return feeds_for(data, m, inputs, feed);
}

bool is_fraction(const std::string& text, double& fraction) {
  char* end = nullptr;
  fraction = std::strtod(text.c_str(), &end);
  return *end == '\0';
}

void split_off(Parts& p, double fraction, uint64_t seed) {
  if (p.train.rows() < 2)
    data_error("OT2101", "one row cannot be split into training and validation",
               "train without validation:  --valid 0");
  const Split split = split_rows(p.train.rows(), fraction, seed, p.data.labels);
  p.valid = p.train.subset(split.valid);
  p.train = p.train.subset(split.train);
  p.has_valid = true;
}

Parts load_parts(const DataRequest& q, const Model& m, const std::vector<ValueDef>& inputs,
                 uint64_t seed, Observer& observer) {
  Parts p;
  p.data = load_data(q.data, q, m, inputs, DataPart::kTrain);
  p.train = p.data.feeds;
  observer.on_note("data", p.data.line);
  for (const std::string& note : p.data.notes) observer.on_note("note", note);
  if (q.overfit > 0) {
    std::vector<int64_t> rows;
    for (int64_t k = 0; k < std::min(q.overfit, p.train.rows()); ++k) rows.push_back(k);
    p.train = p.valid = p.train.subset(rows);
    p.has_valid = true;
    observer.on_note("overfit", cat(rows.size(), " rows, for training and validation alike"));
    return p;
  }
  double fraction = 0;
  if (!is_fraction(q.valid, fraction)) {
    LoadedData v = load_data(q.valid, q, m, inputs, DataPart::kTest);
    p.valid = v.feeds;
    p.has_valid = true;
    observer.on_note("valid", v.line);
  } else if (!(fraction >= 0 && fraction < 1)) {
    usage_error("OT0003", cat("--valid ", q.valid, " is neither a file nor from 0 up to 1"),
                "--valid 0.1");
  } else if (fraction > 0) {
    split_off(p, fraction, seed);
    observer.on_note(
        "split", cat(with_commas(p.train.rows()), " train   ", with_commas(p.valid.rows()),
                     " valid (", fraction * 100, " %", p.data.labels.empty() ? "" : ", stratified",
                     ", seed ", seed, ")"));
  }
  return p;
}

}  // namespace onnxtrain::run
