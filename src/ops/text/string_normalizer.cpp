// StringNormalizer: drops stop words and changes case.
#include <algorithm>
#include <cwctype>

#include "core/utf8.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

namespace {

enum class Case { kNone, kLower, kUpper };

// One code point of UTF-8 from s[at], which moves on; a byte that starts no valid sequence is
// taken as it is (negative).
int32_t decode(const std::string& s, size_t& at) {
  auto byte = [&](size_t i) { return i < s.size() ? uint8_t(s[i]) : uint8_t(0); };
  uint8_t b = byte(at);
  int extra = b < 0x80                ? 0
              : b >= 0xC2 && b < 0xE0 ? 1
              : b >= 0xE0 && b < 0xF0 ? 2
              : b >= 0xF0 && b < 0xF5 ? 3
                                      : -1;
  if (extra < 0) {
    ++at;
    return -int32_t(b);
  }
  int32_t cp = extra == 0 ? b : b & (0x3F >> extra);
  for (int k = 1; k <= extra; ++k) {
    if ((byte(at + size_t(k)) & 0xC0) != 0x80) {
      ++at;
      return -int32_t(b);
    }
    cp = (cp << 6) | (byte(at + size_t(k)) & 0x3F);
  }
  at += size_t(extra) + 1;
  return cp;
}

void encode(int32_t cp, std::string& out) {
  if (cp < 0)
    out += char(-cp);
  else
    append_utf8(char32_t(cp), out);
}

// Simple case mapping of Latin, Greek and Cyrillic, whatever the machine's locale: the C library's
// towlower knows nothing beyond ASCII in the "C" locale, and locales may not be installed.
int32_t to_lower(int32_t c) {
  if (c >= 'A' && c <= 'Z') return c + 32;
  if ((c >= 0xC0 && c <= 0xDE && c != 0xD7) || (c >= 0x391 && c <= 0x3A9 && c != 0x3A2))
    return c + 32;
  if (c >= 0x410 && c <= 0x42F) return c + 32;
  if (c >= 0x400 && c <= 0x40F) return c + 80;
  bool even_upper = (c >= 0x100 && c <= 0x137 && c != 0x130) || (c >= 0x14A && c <= 0x177) ||
                    (c >= 0x460 && c <= 0x481) || (c >= 0x48A && c <= 0x4BF) ||
                    (c >= 0x4D0 && c <= 0x52F) || (c >= 0x1E00 && c <= 0x1E95) ||
                    (c >= 0x1EA0 && c <= 0x1EFF);
  if (even_upper) return c | 1;
  bool odd_upper = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E);
  if (odd_upper) return (c & 1) ? c + 1 : c;
  if (c == 0x178) return 0xFF;
  return c;
}

int32_t to_upper(int32_t c) {
  if (c >= 'a' && c <= 'z') return c - 32;
  if (c == 0xFF) return 0x178;
  if (c == 0x3C2) return 0x3A3;
  if ((c >= 0xE0 && c <= 0xFE && c != 0xF7) || (c >= 0x3B1 && c <= 0x3C9)) return c - 32;
  if (c >= 0x430 && c <= 0x44F) return c - 32;
  if (c >= 0x450 && c <= 0x45F) return c - 80;
  bool even_upper = (c >= 0x100 && c <= 0x137 && c != 0x131) || (c >= 0x14A && c <= 0x177) ||
                    (c >= 0x460 && c <= 0x481) || (c >= 0x48A && c <= 0x4BF) ||
                    (c >= 0x4D0 && c <= 0x52F) || (c >= 0x1E00 && c <= 0x1E95) ||
                    (c >= 0x1EA0 && c <= 0x1EFF);
  if (even_upper) return c & ~1;
  bool odd_upper = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E);
  if (odd_upper) return (c & 1) ? c : c - 1;
  return c;
}

std::string change(const std::string& s, Case to) {
  if (to == Case::kNone) return s;
  std::string out;
  for (size_t at = 0; at < s.size();) {
    int32_t cp = decode(s, at);
    encode(to == Case::kLower ? to_lower(cp) : to_upper(cp), out);
  }
  return out;
}

Case case_of(const Node& n) {
  std::string s = n.s("case_change_action", "NONE");
  if (s == "NONE") return Case::kNone;
  if (s == "LOWER") return Case::kLower;
  if (s == "UPPER") return Case::kUpper;
  model_error("OT1106", cat("case_change_action '", s, "' is not one of LOWER, UPPER, NONE"));
}

void shape(ShapeCtx& c) {
  if (c.dtype(0) != DType::kString) unsupported_dtype(c.dtype(0), "StringNormalizer");
  const Shape& s = c.shape(0);
  if (s.empty() || s.size() > 2 || (s.size() == 2 && s[0] != 1))
    model_error("OT1130",
                cat("StringNormalizer of shape ", to_string(s), ", expected [C] or [1,C]"));
  case_of(c.node());
  c.set_dynamic(0, DType::kString);
}

Kernel make(Prepare& p) {
  Case action = case_of(p.node());
  bool sensitive = p.node().i("is_case_sensitive", 0) != 0;
  std::vector<std::string> stop;
  for (const std::string& w : p.node().strings("stopwords"))
    stop.push_back(sensitive ? w : change(w, Case::kLower));
  std::sort(stop.begin(), stop.end());
  Shape in = p.in(0).shape;
  return [=](const Run& r) {
    const std::string* x = r.in<std::string>(0);
    int64_t n = num_elements(in);
    std::vector<std::string> kept;
    for (int64_t i = 0; i < n; ++i) {
      bool drop =
          !stop.empty() && std::binary_search(stop.begin(), stop.end(),
                                              sensitive ? x[i] : change(x[i], Case::kLower));
      if (!drop) kept.push_back(change(x[i], action));
    }
    if (kept.empty()) kept.emplace_back();  // the standard asks for one empty string
    Shape out = in;
    out.back() = int64_t(kept.size());
    std::move(kept.begin(), kept.end(), r.allocate<std::string>(0, out));
  };
}

}  // namespace

void register_string_normalizer(OpTable& t) {
  t.add({.name = "StringNormalizer",
         .since = 10,
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .no_grad = "strings have no gradient"});
}

}  // namespace onnxtrain::ops
