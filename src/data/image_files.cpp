// Names of image files.
#include "data/image_files.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

namespace onnxtrain {

namespace fs = std::filesystem;

namespace {

template <size_t n>
bool ends_as(const fs::path& p, const std::array<const char*, n>& endings) {
  std::string ending = p.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

bool hidden(const fs::path& p) { return is_hidden_name(p.filename().string()); }

// Every file and folder below, but not inside of hidden folders and links. f: true to stop.
template <class F>
void walk(const std::string& folder, const F& f) {
  std::error_code ec;
  for (fs::recursive_directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    if (hidden(it->path())) {
      it.disable_recursion_pending();
      continue;
    }
    if (f(*it)) return;
  }
}

// A link to nothing is an image that is missing.
bool is_image(const fs::directory_entry& e) {
  return is_image_name(e.path().string()) &&
         (e.is_regular_file() || (e.is_symlink() && !e.exists()));
}

}  // namespace

bool is_hidden_name(const std::string& name) {
  static constexpr std::array kOfSystems = {"__MACOSX", "Thumbs.db", "desktop.ini"};
  return name.starts_with(".") || std::count(kOfSystems.begin(), kOfSystems.end(), name) != 0;
}

bool is_image_name(const std::string& path) {
  static constexpr std::array kEndings = {".png", ".jpg", ".jpeg", ".bmp",  ".ppm",
                                          ".pgm", ".tif", ".tiff", ".webp", ".jp2"};
  return ends_as(path, kEndings);
}

bool is_other_image_name(const std::string& path) {
  static constexpr std::array kEndings = {".gif", ".heic", ".heif", ".avif", ".svg",
                                          ".ico", ".psd",  ".dng",  ".jxl"};
  return ends_as(path, kEndings);
}

std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& e : fs::directory_iterator(folder))
    if (!hidden(e.path()) && e.is_directory()) names.push_back(e.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> images_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& e : fs::directory_iterator(folder))
    if (!hidden(e.path()) && is_image(e)) names.push_back(e.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> images_below(const std::string& folder) {
  std::vector<std::string> names;
  walk(folder, [&](const fs::directory_entry& e) {
    if (is_image(e)) names.push_back(e.path().string().substr(folder.size() + 1));
    return false;
  });
  std::sort(names.begin(), names.end());
  return names;
}

std::string other_image_below(const std::string& folder) {
  std::string found;
  walk(folder, [&](const fs::directory_entry& e) {
    if (is_other_image_name(e.path().string())) found = e.path().string();
    return !found.empty();
  });
  return found;
}

std::vector<std::string> classes_one_deeper(const std::string& root) {
  const std::vector<std::string> classes = folders_in(root);
  if (classes.size() < 2) return {};
  const std::vector<std::string> inside = folders_in(root + "/" + classes[0]);
  for (const std::string& name : classes)
    if (!images_in(root + "/" + name).empty() || folders_in(root + "/" + name) != inside) return {};
  return inside.size() < 2 ? std::vector<std::string>() : inside;
}

std::string class_root(std::string folder) {
  for (;;) {
    const std::vector<std::string> inside = folders_in(folder);
    if (inside.size() != 1 || !images_in(folder).empty()) return folder;
    const std::string next = folder + "/" + inside[0];
    if (folders_in(next).size() < 2 || !images_in(next).empty()) return folder;
    folder = next;
  }
}

}  // namespace onnxtrain
