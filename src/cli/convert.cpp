// `convert`: hands over to the Python side, where the frameworks live.
#include <string>
#include <vector>

#include "cli/common/commands.hpp"
#include "cli/processes/python_side.hpp"
#include "core/error.hpp"

namespace onnxtrain::cli {

namespace {

int convert(const std::string& from, const std::string& to, const std::string& framework,
            bool verify) {
  std::vector<std::string> args = {from, to};
  if (!framework.empty()) args.insert(args.end(), {"--to", framework});
  if (verify) args.push_back("--verify");
  become_python("onnxtrain.convert", args);
  usage_error("OT1731", cat("converting needs Python, and ", missing_python()),
              "install it with the package:  pip install onnxtrain[torch]   or name it in "
              "ONNXTRAIN_PYTHON");
}

}  // namespace

void add_convert(Registry& r) {
  static std::string from, to, framework;
  static bool verify = false;
  CLI::App* c = r.add(
      "convert", "convert to and from PyTorch, Keras and TensorFlow (needs the Python package)",
      "  onnxtrain convert model.train.onnx model.pt --verify    training continues in PyTorch\n"
      "  onnxtrain convert model.pt model.train.onnx             and comes back\n"
      "  onnxtrain convert model.keras model.train.onnx          a Keras training, .h5 too\n"
      "  onnxtrain convert model.train.onnx folder --to savedmodel   and on in TensorFlow");
  c->add_option("IN", from, "a model: .onnx, .pt, .pt2, .keras, .h5, a folder with saved_model.pb")
      ->required();
  c->add_option("OUT", to, "where to write")->required();
  c->add_option(
      "--to", framework,
      "torch (everything), state_dict (weights for the original class), program "
      "(torch.export's, inference), keras, h5, savedmodel (a folder), onnx; by default from "
      "OUT's suffix");
  c->add_flag("--verify", verify, "run one step on both sides and print the largest difference");
  r.on(c, [] { return convert(from, to, framework, verify); });
}

}  // namespace onnxtrain::cli
