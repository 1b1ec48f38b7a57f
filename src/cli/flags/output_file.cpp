// Endings of output files.
#include "cli/flags/output_file.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "core/error.hpp"
#include "core/shell.hpp"

namespace onnxtrain::cli {

namespace {

// Endings that say a format.
const std::vector<std::string> kKnown = {
    ".onnx",    ".npz",         ".npy",    ".csv",    ".tsv", ".txt",     ".json",
    ".jsonl",   ".toml",        ".yaml",   ".html",   ".pt",  ".pth",     ".pt2",
    ".h5",      ".hdf5",        ".keras",  ".tflite", ".pb",  ".pickle",  ".pkl",
    ".zip",     ".gz",          ".xlsx",   ".png",    ".jpg", ".parquet", ".arrow",
    ".feather", ".safetensors", ".joblib", ".ckpt",   ".xml", ".md",      ".log"};

bool has(const std::vector<std::string>& all, const std::string& x) {
  return std::find(all.begin(), all.end(), x) != all.end();
}

}  // namespace

void check_ending(const std::string& path, const std::vector<std::string>& endings, bool others) {
  if (path.empty()) return;
  std::string ending = std::filesystem::path(path).extension().string();
  for (char& c : ending) c = char(std::tolower(static_cast<unsigned char>(c)));
  if (has(endings, ending) || (others && !has(kKnown, ending))) return;
  if (path.starts_with("/dev/")) return;
  std::string list;
  for (const std::string& e : endings) list += (list.empty() ? "" : " or ") + e;
  const std::string stem = std::filesystem::path(path).replace_extension(endings[0]).string();
  usage_error("OT0011",
              cat("-o ", path, ": the file would be written as ", list,
                  ending.empty() ? ", the name says no format" : cat(", its name says ", ending)),
              cat("-o ", shell_word(stem)));
}

}  // namespace onnxtrain::cli
