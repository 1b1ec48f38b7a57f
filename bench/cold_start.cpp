// From the start of the process to the first finished training step, through the C++ API:
//   cold_start MODEL.onnx RECIPE.json|- NAME=FILE.npy...
// RECIPE as of docs/recipe.md; - for a file that carries its training. Files of float32 or int64.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

#include <onnxtrain/onnxtrain.hpp>

namespace {

double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

// The kernel's note, in steps of 10 ms.
double started() {
  std::stringstream rest(
      contents("/proc/self/stat").substr(contents("/proc/self/stat").rfind(')')));
  std::string field;
  for (int k = 0; k < 21; ++k) rest >> field;
  return std::stod(field) / double(sysconf(_SC_CLK_TCK));
}

template <class T>
ot::Value tensor(const std::vector<int64_t>& shape, const std::string& file, size_t from) {
  std::vector<T> data((file.size() - from) / sizeof(T));
  std::memcpy(data.data(), file.data() + from, data.size() * sizeof(T));
  return ot::Value::tensor<T>(shape, data);
}

ot::Value read_npy(const std::string& path) {
  const std::string file = contents(path);
  const size_t header = 10 + (uint8_t(file.at(8)) | size_t(uint8_t(file.at(9))) << 8);
  const std::string text = file.substr(10, header - 10);
  std::vector<int64_t> shape;
  std::stringstream sizes(text.substr(text.find("'shape': (") + 10));
  for (int64_t n; sizes >> n; sizes.ignore(1)) shape.push_back(n);
  return text.find("<f4") != std::string::npos ? tensor<float>(shape, file, header)
                                               : tensor<int64_t>(shape, file, header);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) {
    std::fprintf(stderr, "cold_start MODEL.onnx RECIPE.json|- NAME=FILE.npy...\n");
    return 2;
  }
  const double begin = seconds(CLOCK_BOOTTIME);
  ot::Model model = ot::Model::load(argv[1]);
  const double loaded = seconds(CLOCK_BOOTTIME);
  if (std::string(argv[2]) != "-") model = model.prepare(contents(argv[2]));
  const double prepared = seconds(CLOCK_BOOTTIME);
  ot::Trainer trainer(std::move(model));
  const double made = seconds(CLOCK_BOOTTIME);
  std::vector<std::pair<std::string, ot::Value>> given;
  for (int k = 3; k < argc; ++k) {
    const std::string arg = argv[k];
    const size_t at = arg.find('=');
    given.emplace_back(arg.substr(0, at), read_npy(arg.substr(at + 1)));
  }
  ot::Feeds feeds;
  for (auto& [name, value] : given) feeds.emplace_back(name, &value);
  trainer.step(feeds);
  const double done = seconds(CLOCK_BOOTTIME);
  trainer.step(feeds);
  std::printf(
      "%.2f s: process %.3f, load %.3f, prepare %.3f, trainer %.3f, first step %.3f; second step "
      "%.3f\n",
      done - started(), begin - started(), loaded - begin, prepared - loaded, made - prepared,
      done - made, seconds(CLOCK_BOOTTIME) - done);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
