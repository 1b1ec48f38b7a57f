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
    ".onnx",  ".npz",    ".npy",     ".csv",    ".tsv",     ".txt",         ".json",   ".jsonl",
    ".toml",  ".yaml",   ".html",    ".pt",     ".pth",     ".pt2",         ".h5",     ".hdf5",
    ".keras", ".tflite", ".pb",      ".pickle", ".pkl",     ".zip",         ".gz",     ".xlsx",
    ".png",   ".jpg",    ".parquet", ".arrow",  ".feather", ".safetensors", ".joblib", ".ckpt",
    ".xml",   ".md",     ".log",     ".pdf",    ".svg",     ".doc",         ".docx",   ".xls",
    ".mat",   ".gif",    ".bmp",     ".ort",    ".gguf",    ".py",          ".ipynb"};

bool has(const std::vector<std::string>& all, const std::string& x) {
  return std::find(all.begin(), all.end(), x) != all.end();
}

}  // namespace

void check_ending(const std::string& path, const std::vector<std::string>& endings, bool others,
                  const std::string& flag) {
  if (path.empty()) return;
  if (path == "-")
    usage_error("OT0011", cat(flag, " -: the result goes to a file, not to standard output"),
                cat(flag, " result", endings[0]));
  std::string ending = std::filesystem::path(path).extension().string();
  for (char& c : ending) c = char(std::tolower(static_cast<unsigned char>(c)));
  if (has(endings, ending) || (others && !has(kKnown, ending))) return;
  if (path.starts_with("/dev/")) return;
  std::string list;
  for (const std::string& e : endings) list += (list.empty() ? "" : " or ") + e;
  const std::string stem = std::filesystem::path(path).replace_extension(endings[0]).string();
  usage_error("OT0011",
              cat(flag, " ", path, ": the file would be written as ", list,
                  ending.empty() ? ", the name says no format" : cat(", its name says ", ending)),
              cat(flag, " ", shell_word(stem)));
}

}  // namespace onnxtrain::cli
