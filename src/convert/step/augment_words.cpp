// The words of --augment.
#include <array>
#include <charconv>
#include <cmath>

#include "convert/step/augment.hpp"
#include "core/closest.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace onnxtrain {

namespace {

struct Word {
  const char* kind;
  double usual, low, high;
  bool whole;  // a number of pixels
  const char* meaning;
};
constexpr double kMost = 1e6;
constexpr std::array<Word, 6> kWords = {{
    {"flip", 0.5, 0, 1, false, "the probability of a mirror image, from 0 to 1"},
    {"crop", 4, 1, kMost, true, "the pixels that an image is moved by at most, a whole number"},
    {"rotate", 10, 0, 180, false, "the largest angle in degrees, up to 180"},
    {"color", 0.2, 0, 1, false, "the largest change of brightness, from 0 to 1"},
    {"cutout", 8, 1, kMost, true, "the side of the square in pixels, a whole number"},
    {"mixup", 0.2, 0, 100, false, "the parameter of the Beta distribution, above 0"},
}};

const char* const kExample = "--augment flip,crop:4,rotate:10,color:0.2,cutout:8,mixup:0.2";

Augmentation one(const std::string& part) {
  if (part.ends_with(".onnx")) return {part, 0};
  const size_t colon = part.find(':');
  const std::string kind = part.substr(0, colon);
  std::vector<std::string> kinds;
  for (const Word& w : kWords) kinds.emplace_back(w.kind);
  for (const Word& w : kWords) {
    if (kind != w.kind) continue;
    if (colon == std::string::npos) return {kind, w.usual};
    const std::string text = part.substr(colon + 1);
    double v = 0;
    const auto [stop, bad] = std::from_chars(text.data(), text.data() + text.size(), v);
    const bool number = bad == std::errc() && stop == text.data() + text.size();
    if (!number || !(v >= w.low && v <= w.high) || v == 0 || (w.whole && v != std::floor(v)))
      usage_error("OT2211", cat("augment: ", kind, ":", text, ": the number is ", w.meaning),
                  cat("--augment ", kind, ":", w.usual));
    return {kind, v};
  }
  const std::string near = closest(kind, kinds);
  std::string all;
  for (const std::string& k : kinds) all += k + ", ";
  usage_error(
      "OT2210",
      cat("augment: '", kind, "' is not known; there are ", all, "and an ONNX graph, NAME.onnx"),
      near.empty() ? std::string(kExample) : cat("--augment ", near));
}

}  // namespace

std::vector<Augmentation> parse_augment(const std::string& text) {
  std::vector<Augmentation> all;
  for (size_t at = 0; at <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(',', at), text.size());
    std::string part = text.substr(at, end - at);
    while (!part.empty() && part.front() == ' ') part.erase(0, 1);
    while (!part.empty() && part.back() == ' ') part.pop_back();
    all.push_back(one(part));
    at = end + 1;
  }
  int mixed = 0;
  for (const Augmentation& a : all) mixed += a.kind == "mixup";
  if (mixed > 1) usage_error("OT2211", "augment: mixup is there twice", "--augment mixup:0.2");
  return all;
}

std::string augment_text(const std::string& text) {
  std::string out;
  for (const Augmentation& a : parse_augment(text)) {
    out += out.empty() ? "" : ", ";
    out += a.amount > 0 ? cat(a.kind, ":", a.amount) : a.kind;
  }
  return out;
}

}  // namespace onnxtrain
