// Dates as numbers: days since 1970-01-01, with the time of day as a fraction.
#pragma once
#include <optional>
#include <string_view>

namespace onnxtrain {

// Which number is the day in dates such as 3/4/2020. With the year first (2020-04-03) and with dots
// (3.4.2020, day first) there is nothing to decide.
enum class DateOrder { kDayFirst, kMonthFirst };

// 2020-04-03, 2020/04/03, 3.4.2020, 3/4/2020, 3-4-2020, 3/4/20 and 03.04.20 (years from 1969 to
// 2068), 2020-04 (its first day), 3 Apr 2020, 3-Apr-20, April 3, 2020, Fri, 3 Apr 2020; then
// nothing, or T or a blank and 14:30[:15[.5]] or 2:30 PM and nothing, Z, UTC, GMT or +02:00, which
// is taken off. Nullopt for anything else, also for a day that does not exist.
std::optional<double> date_number(std::string_view text, DateOrder order);

}  // namespace onnxtrain
