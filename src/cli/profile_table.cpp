// Printing profiles.
#include "cli/profile_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

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
  std::printf("%-34.34s %6lld %10.4f %5.1f%% %9.1f %8.1f %6.0f%%\n", s.name.c_str(),
              std::llround(double(s.calls) * per), s.seconds * per * 1e3, 100 * s.seconds / total,
              s.flops / s.seconds / 1e9, s.bytes / s.seconds / 1e9, 100 * s.least / s.seconds);
}

double total_of(const std::vector<NodeProfile>& nodes) {
  double t = 0;
  for (const NodeProfile& n : nodes) t += n.seconds;
  return std::max(t, 1e-12);
}

}  // namespace

void print_profile(const std::vector<NodeProfile>& nodes, const Peak& peak, int64_t steps,
                   size_t slowest) {
  double total = total_of(nodes);
  std::printf("\npeak      %.0f GFLOP/s, %.1f GB/s (a large GEMM, a long vector sum)\n",
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
}

nlohmann::json profile_json(const std::vector<NodeProfile>& nodes, const Peak& peak,
                            int64_t steps) {
  using nlohmann::json;
  double per = 1.0 / double(std::max<int64_t>(1, steps));
  json list = json::array();
  for (const NodeProfile& n : nodes)
    list.push_back({{"name", n.name},
                    {"op", n.op},
                    {"impl", n.impl},
                    {"shapes", n.shapes},
                    {"phase", phase_name(n.phase)},
                    {"ms", n.seconds * per * 1e3},
                    {"flops", n.cost.flops},
                    {"bytes", n.cost.bytes},
                    {"gflops", n.cost.flops * double(n.calls) / n.seconds / 1e9},
                    {"share_of_peak", peak.share(n)},
                    {"share_of_roof", peak.share(n)}});  // its name before
  json ops = json::object();
  for (const Sum& s : sums(nodes, peak, [](const NodeProfile& n) { return n.op; }))
    ops[s.name] = {{"ms", s.seconds * per * 1e3}, {"calls", double(s.calls) * per}};
  const json limits = {{"gflops", peak.flops / 1e9}, {"gbytes_per_s", peak.bytes / 1e9}};
  return {{"peak", limits},
          {"roof", limits},  // its name before
          {"operators", ops},
          {"nodes", list}};
}

}  // namespace onnxtrain::cli
