// `convert`: hands over to the Python side, where the frameworks live.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "core/error.hpp"

namespace onnxtrain::cli {

namespace {

// The interpreter beside this program (an environment's bin), that of the active environment, or the
// first on the path. ONNXTRAIN_PYTHON overrides.
std::vector<std::string> interpreters() {
  std::vector<std::string> found;
  if (const char* named = std::getenv("ONNXTRAIN_PYTHON")) return {named};
  std::error_code none;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
  if (!none) found.push_back((self.parent_path() / "python").string());
  if (const char* env = std::getenv("VIRTUAL_ENV"))
    found.push_back((std::filesystem::path(env) / "bin" / "python").string());
  std::erase_if(found, [](const std::string& p) { return !std::filesystem::exists(p); });
  found.push_back("python3");
  found.push_back("python");
  return found;
}

int convert(const std::string& from, const std::string& to, const std::string& framework,
            bool verify) {
  std::vector<std::string> args = {"", "-m", "onnxtrain.convert", from, to};
  if (!framework.empty()) args.insert(args.end(), {"--to", framework});
  if (verify) args.push_back("--verify");
  for (const std::string& python : interpreters()) {
    args[0] = python;
    std::vector<char*> raw;
    for (std::string& a : args) raw.push_back(a.data());
    raw.push_back(nullptr);
    execvp(raw[0], raw.data());  // returns only when there is no such program
  }
  usage_error("OT1731", "converting needs Python, and there is none on the path",
              "install it with the package:  pip install onnxtrain[torch]   or name it in "
              "ONNXTRAIN_PYTHON");
}

}  // namespace

void add_convert(Registry& r) {
  static std::string from, to, framework;
  static bool verify = false;
  CLI::App* c = r.add(
      "convert", "to and from PyTorch (needs the Python side)",
      "  onnxtrain convert model.train.onnx model.pt --verify    training goes on in PyTorch\n"
      "  onnxtrain convert model.pt model.train.onnx             and comes back\n"
      "  onnxtrain convert program.pt2 model.onnx                an exported program");
  c->add_option("IN", from, "a model: .onnx, .pt, .pt2")->required();
  c->add_option("OUT", to, "where to write")->required();
  c->add_option("--to", framework,
                "torch (everything), state_dict (weights for the original class), onnx; by default "
                "from OUT's suffix");
  c->add_flag("--verify", verify, "run one step on both sides and print the largest difference");
  r.on(c, [] { return convert(from, to, framework, verify); });
}

}  // namespace onnxtrain::cli
