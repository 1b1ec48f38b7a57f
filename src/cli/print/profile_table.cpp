// Printing profiles.
#include "cli/print/profile_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "cli/common/narration.hpp"

namespace onnxtrain::cli {

namespace {

struct Sum {
  std::string name;
  double seconds = 0, flops = 0, bytes = 0, least = 0;  // least: seconds at peak
  int64_t calls = 0;
  void add(const NodeProfile& n, const Peak& peak) {
    seconds += n.seconds;
    flops += n.cost.flops * double(n.calls);
    bytes += n.cost.bytes * double(n.calls);
    least += peak.share(n) * n.seconds;
    calls += n.calls;
  }
};

template <class Key>
std::vector<Sum> sums(const std::vector<NodeProfile>& nodes, const Peak& peak, Key key) {
  std::vector<Sum> all;
  for (const NodeProfile& n : nodes) {
    std::string k = key(n);
    auto it = std::find_if(all.begin(), all.end(), [&](const Sum& s) { return s.name == k; });
    if (it == all.end()) it = all.insert(all.end(), Sum{k});
    it->add(n, peak);
  }
  return all;
}

void by_time(std::vector<Sum>& all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Sum& a, const Sum& b) { return a.seconds > b.seconds; });
}

void head(const char* what) {
  std::printf("\n%-34s %6s %10s %6s %9s %8s %7s\n", what, "calls", "ms/step", "time", "GFLOP/s",
              "GB/s", "of peak");
}

void line(const Sum& s, double total, int64_t steps) {
  double per = 1.0 / double(std::max<int64_t>(1, steps));
  const double share = 100 * s.least / s.seconds;
  char of_peak[16];
  std::snprintf(of_peak, sizeof of_peak, share > 100 ? "cache" : "%.0f%%", share);
  std::printf("%-34.34s %6lld %10.4f %5.1f%% %9.1f %8.1f %7s\n", s.name.c_str(),
              std::llround(double(s.calls) * per), s.seconds * per * 1e3, 100 * s.seconds / total,
              s.flops / s.seconds / 1e9, s.bytes / s.seconds / 1e9, of_peak);
}

double total_of(const std::vector<NodeProfile>& nodes) {
  double t = 0;
  for (const NodeProfile& n : nodes) t += n.seconds;
  return std::max(t, 1e-12);
}

void print_stages(const std::vector<Plan::Stage>& stages) {
  double total = 0;
  for (const Plan::Stage& s : stages) total += s.seconds;
  std::printf("\n%-34s %10s %6s %15s\n", "preparation, once", "ms", "time", "nodes");
  for (const Plan::Stage& s : stages)
    std::printf("%-34.34s %10.4f %5.1f%% %6d -> %5d\n", s.name.c_str(), s.seconds * 1e3,
                100 * s.seconds / std::max(total, 1e-12), s.nodes_before, s.nodes_after);
}

}  // namespace

void print_kernels(const std::vector<NodeProfile>& nodes) {
  struct Group {
    int count = 0;
    std::string example;
  };
  std::map<std::pair<std::string, std::vector<std::string>>, Group> groups;
  for (const NodeProfile& n : nodes) {
    Group& g = groups[{cat(n.op, " (", n.impl, ")"), n.refused}];
    if (g.count++ == 0) g.example = n.shapes;
  }
  std::printf("\n%-34s %6s  %s\n", "kernel", "nodes", "first shapes; faster ones that refused");
  for (const auto& [key, g] : groups) {
    std::printf("%-34s %6d  %s\n", key.first.c_str(), g.count, g.example.c_str());
    for (const std::string& why : key.second) std::printf("    not %s\n", why.c_str());
  }
}

void print_profile(const Profiler& profile, const Peak& peak, int64_t steps, size_t slowest) {
  const std::vector<NodeProfile> nodes = profile.nodes();
  double total = total_of(nodes);
  std::printf(
      "\npeak      %.0f GFLOP/s, %.1f GB/s (a large GEMM, a long vector sum); "
      "cache: data in the cache moves faster than that\n",
      peak.flops / 1e9, peak.bytes / 1e9);
  head("phase");
  for (const Sum& s : sums(nodes, peak, [](const NodeProfile& n) { return phase_name(n.phase); }))
    line(s, total, steps);
  head("operator");
  auto ops = sums(nodes, peak, [](const NodeProfile& n) {
    return cat(n.op, " (", n.impl, ") ", phase_name(n.phase));
  });
  by_time(ops);
  for (const Sum& s : ops) line(s, total, steps);
  std::vector<NodeProfile> order = nodes;
  std::stable_sort(order.begin(), order.end(), [](const NodeProfile& a, const NodeProfile& b) {
    return a.seconds > b.seconds;
  });
  if (order.size() > slowest) order.resize(slowest);
  head("slowest nodes");
  for (const NodeProfile& n : order) {
    Sum s{cat(n.op, " ", n.shapes)};
    s.add(n, peak);
    line(s, total, steps);
    std::printf("    %s, %s\n", n.name.c_str(), phase_name(n.phase));
  }
  print_stages(profile.stages());
  if (verbosity() > 0) print_kernels(nodes);
}

nlohmann::json profile_json(const Profiler& profile, const Peak& peak, int64_t steps) {
  using nlohmann::json;
  const std::vector<NodeProfile> nodes = profile.nodes();
  double per = 1.0 / double(std::max<int64_t>(1, steps));
  json list = json::array();
  for (const NodeProfile& n : nodes)
    list.push_back({{"name", n.name},
                    {"op", n.op},
                    {"impl", n.impl},
                    {"refused", n.refused},
                    {"shapes", n.shapes},
                    {"phase", phase_name(n.phase)},
                    {"ms", n.seconds * per * 1e3},
                    {"flops", n.cost.flops},
                    {"bytes", n.cost.bytes},
                    {"gflops", n.cost.flops * double(n.calls) / n.seconds / 1e9},
                    {"share_of_peak", peak.share(n)},
                    {"share_of_roof", peak.share(n)}});  // its name before
  json passes = json::array();
  for (const Plan::Stage& s : profile.stages())
    passes.push_back({{"name", s.name},
                      {"ms", s.seconds * 1e3},
                      {"nodes_before", s.nodes_before},
                      {"nodes_after", s.nodes_after}});
  json ops = json::object();
  for (const Sum& s : sums(nodes, peak, [](const NodeProfile& n) { return n.op; }))
    ops[s.name] = {{"ms", s.seconds * per * 1e3}, {"calls", double(s.calls) * per}};
  const json limits = {{"gflops", peak.flops / 1e9}, {"gbytes_per_s", peak.bytes / 1e9}};
  return {{"peak", limits},
          {"roof", limits},  // its name before
          {"operators", ops},
          {"passes", passes},
          {"nodes", list}};
}

}  // namespace onnxtrain::cli
