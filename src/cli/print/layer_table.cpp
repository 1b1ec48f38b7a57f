// Costs come from a plan of one row in which every node of the file is still there.
#include "cli/print/layer_table.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <unordered_map>

#include "cli/measure/random_feeds.hpp"
#include "core/text.hpp"
#include "engine/profile.hpp"
#include "engine/session.hpp"

namespace onnxtrain::cli {

namespace {

// Name of a node's first output -> floating-point operations of one row. Empty where a plan cannot
// be made for random inputs.
std::map<std::string, double> operations(const Model& m) {
  std::map<std::string, double> out;
  ProgramOptions plain;
  plain.skip_passes = plain_passes();
  plain.limits.memory = size_t(512) << 20;  // nothing runs: a plan of more memory is not worth it
  try {
    Session session(std::make_shared<const Model>(m), plain);
    const Plan& plan = session.plan_for(random_feeds(m, 1));
    const std::vector<NodeProfile> nodes = describe_nodes(plan);
    for (size_t k = 0; k < nodes.size(); ++k) {
      const Node& n = plan.graph.nodes[k];
      if (nodes[k].shapes == "dynamic" || n.outputs.empty() || n.outputs[0] == kNone) continue;
      out[plan.graph.value_name(n.outputs[0])] = nodes[k].cost.flops;
    }
  } catch (const Error&) {  // the columns of shapes and parameters need no plan
    out.clear();
  }
  return out;
}

// 1,234 -> "1.23 k"; one row of a large network has billions.
std::string short_count(double n) {
  const char* const units[] = {"", " k", " M", " G", " T"};
  size_t u = 0;
  while (n >= 1000 && u + 1 < std::size(units)) n /= 1000, ++u;
  char text[32];
  std::snprintf(text, sizeof text, u == 0 ? "%.0f%s" : "%.2f%s", n, units[u]);
  return text;
}

}  // namespace

std::vector<Layer> layers_of(const Model& m, const nlohmann::json& weights, bool all) {
  std::unordered_map<std::string, std::pair<bool, int64_t>> known;  // trained?, elements
  for (const auto& w : weights)
    known[w["name"].get<std::string>()] = {w["role"] == "trained", w["elements"].get<int64_t>()};
  const std::map<std::string, double> cost = operations(m);
  std::vector<Layer> out;
  std::map<std::string, bool> counted;  // a weight that several nodes share counts once
  for (const Node& n : m.main.nodes) {
    Layer l;
    bool has_weights = false;
    for (ValueId v : m.main.reads(n)) {
      const auto it = known.find(m.main.value_name(v));
      if (it == known.end()) continue;
      has_weights = true;
      if (std::exchange(counted[it->first], true)) continue;
      (it->second.first ? l.trained : l.others) += it->second.second;
    }
    if (n.outputs.empty() || n.outputs[0] == kNone || (!has_weights && !all)) continue;
    l.name = n.name.empty() ? m.main.value_name(n.outputs[0]) : n.name;
    l.op = n.op;
    l.output = to_string(m.main.value(n.outputs[0]).type);
    if (auto it = cost.find(m.main.value_name(n.outputs[0])); it != cost.end())
      l.flops = it->second;
    out.push_back(std::move(l));
  }
  return out;
}

nlohmann::json layers_json(const std::vector<Layer>& layers) {
  nlohmann::json list = nlohmann::json::array();
  for (const Layer& l : layers) {
    list.push_back({{"name", l.name},
                    {"op", l.op},
                    {"output", l.output},
                    {"trained", l.trained},
                    {"not_trained", l.others}});
    if (l.flops >= 0) list.back()["flops_per_row"] = l.flops;
  }
  return list;
}

void print_layers(const std::vector<Layer>& layers, size_t most) {
  if (layers.empty()) return;
  size_t name = 5, op = 8, output = 6;
  const size_t shown = std::min(most, layers.size());
  for (size_t k = 0; k < shown; ++k) {
    name = std::max(name, std::min<size_t>(layers[k].name.size(), 40));
    op = std::max(op, layers[k].op.size());
    output = std::max(output, layers[k].output.size());
  }
  std::printf("%-*s  %-*s  %-*s  %12s  %12s  %s\n", int(name), "layer", int(op), "operator",
              int(output), "output", "parameters", "FLOP per row", "trained");
  int64_t trained = 0, others = 0;
  double flops = 0;
  bool all_known = true;
  for (size_t k = 0; k < layers.size(); ++k) {
    const Layer& l = layers[k];
    trained += l.trained;
    others += l.others;
    flops += std::max(l.flops, 0.0);
    all_known &= l.flops >= 0;
    if (k >= shown) continue;
    const char* state = l.trained + l.others == 0 ? ""
                        : l.others == 0           ? "yes"
                        : l.trained == 0          ? "no"
                                                  : "in part";
    std::printf("%-*s  %-*s  %-*s  %12s  %12s  %s\n", int(name), l.name.c_str(), int(op),
                l.op.c_str(), int(output), l.output.c_str(),
                with_commas(l.trained + l.others).c_str(),
                l.flops < 0 ? "-" : short_count(l.flops).c_str(), state);
  }
  if (shown < layers.size()) std::printf("... %d more: --layers\n", int(layers.size() - shown));
  std::printf("layers    %d with %s parameters (%s trained), %s%s FLOP per row\n",
              int(layers.size()), with_commas(trained + others).c_str(),
              with_commas(trained).c_str(), all_known ? "" : "at least ",
              short_count(flops).c_str());
}

}  // namespace onnxtrain::cli
