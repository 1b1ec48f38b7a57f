// Reading dates.
#include "data/table/dates.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string>

namespace onnxtrain {
namespace {

// Reads numbers of limited length from the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  bool empty() const { return text_.empty(); }
  char peek() const { return text_.empty() ? '\0' : text_[0]; }
  bool take(char c) {
    if (peek() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  // As many of these characters as there are.
  size_t skip(std::string_view any) {
    const size_t n = std::min(text_.find_first_not_of(any), text_.size());
    text_.remove_prefix(n);
    return n;
  }
  // The letters at the front, in lower case.
  std::string word() {
    std::string found;
    while (std::isalpha(static_cast<unsigned char>(peek()))) {
      found += char(std::tolower(static_cast<unsigned char>(peek())));
      text_.remove_prefix(1);
    }
    return found;
  }
  // The digits at the front; false when there are none or more than `most`.
  bool number(size_t most, int& value, size_t& digits) {
    digits = 0;
    value = 0;
    while (digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9')
      if (++digits > most) return false;
    if (digits == 0) return false;
    std::from_chars(text_.data(), text_.data() + digits, value);
    text_.remove_prefix(digits);
    return true;
  }

 private:
  std::string_view text_;
};

struct Day {
  int year = 0, month = 0, day = 0;
};

bool exists(const Day& d) {
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (d.month < 1 || d.month > 12 || d.day < 1) return false;
  const bool leap = d.year % 4 == 0 && (d.year % 100 != 0 || d.year % 400 == 0);
  return d.day <= kDays[size_t(d.month - 1)] + (d.month == 2 && leap ? 1 : 0);
}

// Days since 1970-01-01 in the Gregorian calendar.
int64_t days_since_1970(Day d) {
  const int64_t y = d.month <= 2 ? d.year - 1 : d.year;
  const int64_t era = (y >= 0 ? y : y - 399) / 400;
  const int64_t of_era = y - era * 400;
  const int64_t of_year = (153 * (d.month + (d.month > 2 ? -3 : 9)) + 2) / 5 + d.day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

// Of two digits: 1969 to 2068.
int whole_year(int value, size_t digits) {
  return digits == 4 ? value : value < 69 ? 2000 + value : 1900 + value;
}

// 1 to n of the names, by all of its letters or at least the first three; 0: none of them.
template <size_t n>
int named(const std::string& word, const std::array<std::string_view, n>& names) {
  for (size_t k = 0; k < n; ++k)
    if (word.size() >= 3 && names[k].starts_with(word)) return int(k) + 1;
  return 0;
}
int month_named(const std::string& word) {
  return named<12>(word, {"january", "february", "march", "april", "may", "june", "july", "august",
                          "september", "october", "november", "december"});
}
bool is_weekday(const std::string& word) {
  return named<7>(word, {"monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
                         "sunday"}) > 0;
}

// 3 Apr 2020, 3-Apr-20, 3rd April 2020; Apr 3, 2020.
bool read_named_day(Scanner& s, Day& d) {
  size_t day_digits = 0, year_digits = 0;
  int year = 0;
  auto day = [&] {
    if (!s.number(2, d.day, day_digits)) return false;
    const std::string behind = s.word();
    return behind.empty() || behind == "st" || behind == "nd" || behind == "rd" || behind == "th";
  };
  std::string word = s.word();
  if (is_weekday(word)) {
    if (s.skip(",. ") == 0) return false;
    word = s.word();
  }
  if (!word.empty()) {
    d.month = month_named(word);
    if (s.skip(". ") == 0 || !day() || s.skip(", ") == 0) return false;
  } else {
    if (!day() || s.skip(" -/.") == 0) return false;
    d.month = month_named(s.word());
    if (s.skip(" -/.,") == 0) return false;
  }
  if (!s.number(4, year, year_digits) || (year_digits != 4 && year_digits != 2)) return false;
  d.year = whole_year(year, year_digits);
  return exists(d);
}

// The first day of 2020-04.
bool read_month(int year, int month, size_t digits, Day& d) {
  constexpr int kFirst = 1800, kLast = 2200;  // others are numbers of something
  d = {year, month, 1};
  return digits == 2 && year >= kFirst && year <= kLast && exists(d);
}

bool read_day(Scanner& s, DateOrder order, Day& d) {
  int first = 0, second = 0, third = 0;
  size_t n1 = 0, n2 = 0, n3 = 0;
  if (!s.number(4, first, n1)) return false;
  const char separator = s.peek();
  if ((separator != '-' && separator != '/' && separator != '.') || !s.take(separator) ||
      !s.number(2, second, n2))
    return false;
  if (s.empty() && n1 == 4 && separator != '.') return read_month(first, second, n2, d);
  if (!s.take(separator) || !s.number(4, third, n3)) return false;
  // 3/4/20 and 03.04.20; 1.2.3 is the number of a version
  const bool short_year = n3 == 2 && (separator == '/' || (separator == '.' && n1 == 2 && n2 == 2));
  if (n1 == 4 && n3 <= 2)
    d = {first, second, third};
  else if (n1 <= 2 && (n3 == 4 || short_year))
    d = separator == '.' || order == DateOrder::kDayFirst
            ? Day{whole_year(third, n3), second, first}
            : Day{whole_year(third, n3), first, second};
  else
    return false;
  return exists(d);
}

// Two digits up to `most`.
bool two(Scanner& s, int most, int& value) {
  size_t digits = 0;
  return s.number(2, value, digits) && value <= most;
}

// The time of day in days, less the distance of its zone.
bool read_time(Scanner& s, double& days) {
  int hours = 0, minutes = 0, seconds = 0;
  double part = 0;
  if (!two(s, 23, hours) || !s.take(':') || !two(s, 59, minutes)) return false;
  if (s.take(':') && !two(s, 60, seconds)) return false;
  if (s.take('.')) {
    double unit = 0.1;
    for (; s.peek() >= '0' && s.peek() <= '9'; unit /= 10) {
      part += unit * (s.peek() - '0');
      s.take(s.peek());
    }
  }
  s.skip(" ");
  double offset = 0;
  std::string word = s.word();
  if (word == "am" || word == "pm") {
    if (hours < 1 || hours > 12) return false;
    hours = hours % 12 + (word == "pm" ? 12 : 0);
    s.skip(" ");
    word = s.word();
  }
  if (!word.empty() && word != "z" && word != "utc" && word != "gmt") return false;
  if (word.empty() && !s.empty()) {
    const bool minus = s.peek() == '-';
    int zone_hours = 0, zone_minutes = 0;
    if (!s.take(minus ? '-' : '+') || !two(s, 14, zone_hours)) return false;
    s.take(':');
    if (!s.empty() && !two(s, 59, zone_minutes)) return false;
    offset = (minus ? -1 : 1) * (zone_hours * 3600.0 + zone_minutes * 60.0);
  }
  days = (hours * 3600.0 + minutes * 60.0 + seconds + part - offset) / 86400.0;
  return true;
}

}  // namespace

std::optional<double> date_number(std::string_view text, DateOrder order) {
  Scanner s(text);
  Day d;
  double time = 0;
  if (!read_day(s, order, d)) {
    s = Scanner(text);
    if (!read_named_day(s, d)) return std::nullopt;
  }
  if (!s.empty() && (!(s.take('T') || s.take(' ')) || !read_time(s, time))) return std::nullopt;
  if (!s.empty()) return std::nullopt;
  return double(days_since_1970(d)) + time;
}

}  // namespace onnxtrain
