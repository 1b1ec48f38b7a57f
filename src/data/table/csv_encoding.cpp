// Text of other encodings as UTF-8.
#include <algorithm>
#include <array>

#include "core/shell.hpp"
#include "core/text.hpp"
#include "core/utf8.hpp"
#include "data/table/csv.hpp"

namespace onnxtrain {
namespace {

// Windows-1252 beyond Latin-1: what the bytes 0x80 to 0x9F mean; 0: nothing.
constexpr std::array<char32_t, 32> kWindows = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

[[noreturn]] void broken_utf16(const std::string& source, size_t at) {
  data_error("OT2125", cat("'", source, "' is not UTF-16 text: byte ", at, " fits nowhere"),
             "save it as UTF-8, or say what it is:  --encoding latin1");
}

std::string from_utf16(std::string_view text, const std::string& source) {
  const bool big = text.starts_with("\xFE\xFF");
  size_t at = big || text.starts_with("\xFF\xFE") ? 2 : 0;
  auto unit = [&](size_t k) {
    const auto a = static_cast<unsigned char>(text[k]), b = static_cast<unsigned char>(text[k + 1]);
    return char32_t(big ? a * 256 + b : b * 256 + a);
  };
  std::string out;
  for (; at + 1 < text.size(); at += 2) {
    char32_t c = unit(at);
    if (c >= 0xD800 && c < 0xDC00) {
      const char32_t low = at + 3 < text.size() ? unit(at + 2) : 0;
      if (low < 0xDC00 || low > 0xDFFF) broken_utf16(source, at);
      c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
      at += 2;
    } else if (c >= 0xDC00 && c <= 0xDFFF) {
      broken_utf16(source, at);
    }
    append_utf8(c, out);
  }
  if (at != text.size()) broken_utf16(source, at);
  return out;
}

std::string from_bytes(std::string_view text, bool windows) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (char ch : text) {
    char32_t c = static_cast<unsigned char>(ch);
    if (windows && c >= 0x80 && c < 0xA0 && kWindows[c - 0x80] != 0) c = kWindows[c - 0x80];
    append_utf8(c, out);
  }
  return out;
}

// UTF-16 that says so.
bool is_marked(std::string_view text) {
  return text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
}

std::string plain(std::string_view word) {
  std::string out;
  for (char c : word)
    if (c != '-' && c != '_' && c != ' ') out += char(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool is_utf16(std::string_view word) { return word == "utf16" || word == "utf16le"; }
bool is_latin1(std::string_view word) { return word == "latin1" || word == "iso88591"; }
bool is_windows(std::string_view word) { return word == "cp1252" || word == "windows1252"; }

}  // namespace

bool is_csv_encoding(const std::string& encoding) {
  const std::string word = plain(encoding);
  return word.empty() || word == "utf8" || is_utf16(word) || is_latin1(word) || is_windows(word);
}

bool is_utf16_encoding(const std::string& encoding) { return is_utf16(plain(encoding)); }

std::string csv_encoding(std::string_view text, const CsvOptions& options) {
  if (!options.encoding.empty() || options.usual_encoding.empty()) return options.encoding;
  const bool utf8 = text.find('\0') == std::string_view::npos &&
                    find_invalid_utf8(text) == std::string_view::npos;
  return utf8 || is_marked(text) ? std::string() : options.usual_encoding;
}

std::string encoding_note(std::string_view text, const CsvOptions& options) {
  const std::string used = csv_encoding(text, options), word = plain(used);
  if (options.encoding.empty())
    return used.empty() ? std::string()
                        : cat("read as ", used,
                              ", as the data of the training was   (--encoding to change)");
  const bool bytes = (is_latin1(word) || is_windows(word)) && !is_marked(text);
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return c >= 0; });
  return bytes && !ascii && find_invalid_utf8(text) == std::string_view::npos
             ? cat("the text is UTF-8 and is read as ", used,
                   ": letters with accents become two others; leave --encoding out")
             : std::string();
}

std::string_view csv_utf8(std::string_view text, const std::string& source,
                          const std::string& encoding, std::string& store) {
  const std::string word = plain(encoding);
  const bool marked = is_marked(text);
  if (is_utf16(word) || (word.empty() && marked)) {
    text = store = from_utf16(text, source);
  } else if (is_latin1(word) || is_windows(word)) {
    text = store = from_bytes(text, is_windows(word));
  } else if (!is_csv_encoding(encoding)) {
    usage_error("OT0032", cat("--encoding ", encoding, " is not known"),
                "--encoding utf-8, utf-16, latin1 or cp1252");
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (text.find('\n') == std::string_view::npos && text.find('\r') != std::string_view::npos) {
    std::string lines(text);  // lines end as they did on old Macintosh computers
    std::replace(lines.begin(), lines.end(), '\r', '\n');
    store = std::move(lines);
    text = store;
  }
  if (text.find('\0') != std::string_view::npos)
    data_error("OT2125", cat("'", source, "' has zero bytes in it: it is not a csv text"),
               "save it as text (UTF-8), or give an array file: npy, npz");
  if (const size_t at = find_invalid_utf8(text); at != std::string_view::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(at), '\n');
    data_error(
        "OT2125",
        cat("'", source, "' is not UTF-8 text: line ", line, " has a byte of another encoding"),
        "say which one; files of Windows and Excel mostly are  --encoding cp1252");
  }
  return text;
}

bool is_csv_separator(const std::string& word) {
  const bool named = word.empty() || word == "tab" || word == "\\t" || word == "space";
  return named || (word.size() == 1 && word != "\"" && word != "\n" && word != "\r");
}

char csv_separator(const std::string& word) {
  if (word.empty()) return 0;
  if (word == "tab" || word == "\\t") return '\t';
  if (word == "space") return ' ';
  if (!is_csv_separator(word))
    usage_error("OT0033", cat("--separator '", word, "' is not one character"),
                "--separator ';'   or   --separator tab");
  return word[0];
}

std::string csv_separator_word(char separator) {
  return separator == '\t'  ? "tab"
         : separator == ' ' ? "space"
         : separator == 0   ? std::string()
                            : std::string(1, separator);
}

}  // namespace onnxtrain
