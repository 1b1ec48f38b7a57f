// Reading dates.
#include "data/table/dates.hpp"

#include <array>
#include <charconv>
#include <cstdint>

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

bool read_day(Scanner& s, DateOrder order, Day& d) {
  int first = 0, second = 0, third = 0;
  size_t n1 = 0, n2 = 0, n3 = 0;
  if (!s.number(4, first, n1)) return false;
  const char separator = s.peek();
  if ((separator != '-' && separator != '/' && separator != '.') || !s.take(separator) ||
      !s.number(2, second, n2) || !s.take(separator) || !s.number(4, third, n3))
    return false;
  if (n1 == 4 && n3 <= 2)
    d = {first, second, third};
  else if (n1 <= 2 && n3 == 4)
    d = separator == '.' || order == DateOrder::kDayFirst ? Day{third, second, first}
                                                          : Day{third, first, second};
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
  double offset = 0;
  if (!s.take('Z') && !s.empty()) {
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
  if (!read_day(s, order, d)) return std::nullopt;
  if (!s.empty() && (!(s.take('T') || s.take(' ')) || !read_time(s, time))) return std::nullopt;
  if (!s.empty()) return std::nullopt;
  return double(days_since_1970(d)) + time;
}

}  // namespace onnxtrain
