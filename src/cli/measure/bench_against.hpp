// `bench --against`: the same model and inputs in other runtimes, in interleaved rounds.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/session.hpp"

namespace onnxtrain::cli {

struct BenchPart {
  const char* name;  // "inference" or "training"
  std::shared_ptr<const Model> model;
  Feeds feeds;
};

// Names of peers from "torch,ort"; an error for one that is not known.
std::vector<std::string> peer_names(const std::string& list);

// {"inference": {"onnxtrain": {"ms": ...}, "torch": {"ms", "ratio"} or {"left_out": why}}, ...}
nlohmann::json bench_against(const std::vector<std::string>& peers,
                             const std::vector<BenchPart>& parts, int threads, double seconds);
void print_against(const nlohmann::json& found);

}  // namespace onnxtrain::cli
