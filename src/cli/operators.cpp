// operators: the operator table as the build has it, with what each record says about its gradient.
// Not in the help: for the tests and the tables in docs/.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/common/commands.hpp"
#include "op/op.hpp"

namespace onnxtrain::cli {

namespace {

nlohmann::json row(const Op& op) {
  nlohmann::json j;
  j["domain"] = op.domain.empty() ? std::string("ai.onnx") : op.domain;
  j["name"] = op.name;
  j["since"] = op.since;
  j["gradient"] = op.grad != nullptr;
  j["why_not"] = op.no_grad ? op.no_grad : "";
  j["lowered"] = op.lower != nullptr || op.function != nullptr;
  j["random"] = op.random;
  return j;
}

int print(bool as_json) {
  nlohmann::json all = nlohmann::json::array();
  for (const Op* op : all_ops().all()) all.push_back(row(*op));
  if (as_json) {
    std::printf("%s\n", all.dump(1).c_str());
    return 0;
  }
  for (const auto& j : all) {
    std::string what = j["gradient"].get<bool>() ? "gradient" : j["why_not"].get<std::string>();
    std::printf("%-28s %-28s %3d  %s\n", j["domain"].get<std::string>().c_str(),
                j["name"].get<std::string>().c_str(), j["since"].get<int>(), what.c_str());
  }
  return 0;
}

}  // namespace

void add_operators(Registry& r) {
  CLI::App* c = r.add("operators", "the table of operators and their gradients",
                      "  onnxtrain operators --json");
  c->group("");  // hidden
  auto as_json = std::make_shared<bool>(false);
  c->add_flag("--json", *as_json, "for a machine");
  r.on(c, [as_json] { return print(*as_json); });
}

}  // namespace onnxtrain::cli
