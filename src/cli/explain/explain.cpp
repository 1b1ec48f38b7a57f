// explain: a longer explanation of an error code.
#include <cctype>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/common/commands.hpp"
#include "cli/explain/explanations.hpp"
#include "core/error.hpp"

namespace onnxtrain::cli {

namespace {

int explain(std::string code, bool as_json) {
  for (char& c : code) c = char(std::toupper(c));
  if (code.size() == 4) code = "OT" + code;
  for (auto list :
       {graph_explanations(), training_explanations(), data_explanations(), run_explanations()})
    for (const Explanation& e : list) {
      if (code != e.code) continue;
      if (as_json)
        std::printf("%s\n",
                    nlohmann::ordered_json{{"code", e.code}, {"text", e.text}}.dump().c_str());
      else
        std::printf("%s\n%s\n", e.code, e.text);
      return 0;
    }
  usage_error("OT0002", cat("there is no error code '", code, "'"),
              "a code is OT and four digits, in brackets at the front of a message");
}

}  // namespace

void add_explain(Registry& r) {
  static std::string code;
  static bool as_json = false;
  CLI::App* c =
      r.add("explain", "a longer explanation of an error code", "  onnxtrain explain OT1203");
  c->add_option("CODE", code, "an error code, for example OT1203")->required();
  c->add_flag("--json", as_json, "machine-readable");
  r.on(c, [] { return explain(code, as_json); });
}

}  // namespace onnxtrain::cli
