// Splitting csv text into fields.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "data/table/csv.hpp"

namespace onnxtrain {

std::string_view csv_trimmed(std::string_view s) {
  constexpr std::string_view kNoBreak = "\u00a0";  // what web pages and spreadsheets put there
  for (size_t before = s.size() + 1; s.size() < before;) {
    before = s.size();
    while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
    while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
    if (s.starts_with(kNoBreak)) s.remove_prefix(kNoBreak.size());
    if (s.ends_with(kNoBreak)) s.remove_suffix(kNoBreak.size());
  }
  return s;
}

CsvReader::CsvReader(std::string_view text, char separator, const std::string& source)
    : text_(text), separator_(separator), source_(source) {}

// At a quote: the field up to the closing quote, doubled quotes made single.
std::string_view CsvReader::quoted_field(std::string& store) {
  const int64_t begin_line = line_;
  store.clear();
  for (++at_; at_ < text_.size(); ++at_) {
    if (text_[at_] == '\n') ++line_;
    if (text_[at_] != '"') {
      store += text_[at_];
    } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
      store += '"';
      ++at_;
    } else {
      ++at_;
      // whatever stands between the closing quote and the separator belongs to the field
      while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n') {
        if (text_[at_] != '\r') store += text_[at_];
        ++at_;
      }
      return store;
    }
  }
  data_error(
      "OT2123",
      cat("'", source_, "': the quote on line ", with_commas(begin_line), " is never closed"),
      "write two quotes for one inside a field, or remove the quote");
}

bool CsvReader::next(std::vector<std::string_view>& fields) {
  while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  if (at_ >= text_.size()) return false;
  record_line_ = line_;
  fields.clear();
  size_t quoted = 0;
  std::vector<std::pair<size_t, size_t>> moved;  // (field, store): stores_ may still grow
  for (;;) {
    if (at_ < text_.size() && text_[at_] == '"') {
      if (quoted == stores_.size()) stores_.emplace_back();
      quoted_field(stores_[quoted]);
      moved.emplace_back(fields.size(), quoted++);
      fields.emplace_back();
    } else {
      const size_t begin = at_;
      while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n') ++at_;
      std::string_view field = text_.substr(begin, at_ - begin);
      if (!field.empty() && field.back() == '\r') field.remove_suffix(1);
      fields.push_back(field);
    }
    if (at_ >= text_.size()) break;
    if (text_[at_++] == '\n') {
      ++line_;
      break;
    }
    if (at_ >= text_.size()) {  // the text ends with a separator: a last empty field
      fields.emplace_back();
      break;
    }
  }
  for (const auto& [field, store] : moved) fields[field] = stores_[store];
  return true;
}

char sniff_separator(std::string_view text) {
  constexpr std::array<char, 4> kCandidates = {',', '\t', ';', '|'};
  char best = ',';
  size_t best_score = 0;
  for (char candidate : kCandidates) {
    size_t lines = 0, count = 0, first = 0;
    bool quoted = false, consistent = true;
    for (size_t i = 0; i < text.size() && i < 65536 && lines < 20; ++i) {
      if (text[i] == '"') quoted = !quoted;
      if (quoted) continue;
      if (text[i] == candidate) ++count;
      if (text[i] != '\n') continue;
      if (lines++ == 0)
        first = count;
      else if (count > 0 && count != first)
        consistent = false;
      count = 0;
    }
    if (lines == 0) first = count;
    // the same number in every line says more than a large number
    const size_t score = first == 0 ? 0 : first + (consistent ? 100000 : 0);
    if (score > best_score) best = candidate, best_score = score;
  }
  return best;
}

namespace {

constexpr std::string_view kMissing[] = {"",     "NA",   "N/A", "NaN", "nan",  "NAN",
                                         "null", "NULL", "?",   "n/a", "#N/A", "<NA>"};
constexpr std::string_view kDashes[] = {"-", "--",   "---", "\xE2\x80\x93", "\xE2\x80\x94",
                                        ".", "None", "none"};

template <size_t N>
bool is_word_of(std::string_view field, const std::string_view (&words)[N]) {
  return std::find(words, words + N, csv_trimmed(field)) != words + N;
}

}  // namespace

bool csv_missing(std::string_view field) { return is_word_of(field, kMissing); }
bool csv_dash(std::string_view field) { return is_word_of(field, kDashes); }

std::vector<std::string> csv_missing_words() {
  std::vector<std::string> all(std::begin(kMissing), std::end(kMissing));
  all.insert(all.end(), std::begin(kDashes), std::end(kDashes));
  return all;
}

std::optional<double> csv_number(std::string_view field) {
  std::string_view f = csv_trimmed(field);
  if (f.size() > 1 && f[0] == '+' && f[1] != '-') f.remove_prefix(1);
  double v = 0;
  const auto [stop, bad] = std::from_chars(f.data(), f.data() + f.size(), v);
  if (stop != f.data() + f.size() || f.empty()) return std::nullopt;
  if (bad == std::errc::result_out_of_range) return std::nullopt;
  if (bad != std::errc() || std::isnan(v)) return std::nullopt;
  return v;
}

}  // namespace onnxtrain
