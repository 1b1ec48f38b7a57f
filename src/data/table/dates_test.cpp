// Dates as days since 1970.
#include "data/table/dates.hpp"

#include <gtest/gtest.h>

namespace onnxtrain {
namespace {

double day(const char* text, DateOrder order = DateOrder::kMonthFirst) {
  const auto v = date_number(text, order);
  return v ? *v : -1e9;
}

TEST(Dates, AreDaysSince1970) {
  EXPECT_EQ(day("1970-01-01"), 0);
  EXPECT_EQ(day("1969-12-31"), -1);
  EXPECT_EQ(day("2000-03-01"), 11017);
  EXPECT_EQ(day("2024/02/29"), 19782);
  EXPECT_EQ(day("29.2.2024"), 19782);
  EXPECT_EQ(day("1900-01-01"), -25567);
}

TEST(Dates, DayAndMonthByTheOrder) {
  EXPECT_EQ(day("3/4/2020", DateOrder::kMonthFirst), day("2020-03-04"));
  EXPECT_EQ(day("3/4/2020", DateOrder::kDayFirst), day("2020-04-03"));
  EXPECT_EQ(day("3.4.2020", DateOrder::kMonthFirst), day("2020-04-03"));
  EXPECT_EQ(day("31/4/2020", DateOrder::kDayFirst), -1e9);
}

TEST(Dates, TimesAndZones) {
  EXPECT_EQ(day("1970-01-02T12:00"), 1.5);
  EXPECT_EQ(day("1970-01-02 06:00:00"), 1.25);
  EXPECT_EQ(day("1970-01-02T12:00:00Z"), 1.5);
  EXPECT_EQ(day("1970-01-02T12:00:00+06:00"), 1.25);
  EXPECT_NEAR(day("1970-01-01T00:00:00.5"), 0.5 / 86400, 1e-12);
}

TEST(Dates, WithNamesOfMonths) {
  for (const char* text :
       {"3 Apr 2020", "3-Apr-2020", "03-APR-20", "April 3, 2020", "Apr. 3 2020", "3rd april 2020",
        "Fri, 3 Apr 2020", "Friday, April 3, 2020", "3/Apr/2020", "3. April 2020"})
    EXPECT_EQ(day(text), day("2020-04-03")) << text;
  EXPECT_EQ(day("Fri, 03 Apr 2020 12:00:00 GMT"), day("2020-04-03") + 0.5);
  for (const char* text : {"3 Apx 2020", "31 Apr 2020", "Apr 2020", "3 Apr", "May",
                           "12 Monkeys 1995", "Aprilia 3 2020", "3 Apr 200"})
    EXPECT_EQ(day(text), -1e9) << text;
}

TEST(Dates, ShortYearsMonthsAndHalvesOfTheDay) {
  EXPECT_EQ(day("3/4/20"), day("2020-03-04"));
  EXPECT_EQ(day("3/4/20", DateOrder::kDayFirst), day("2020-04-03"));
  EXPECT_EQ(day("03.04.99"), day("1999-04-03"));
  EXPECT_EQ(day("2020-04"), day("2020-04-01"));
  EXPECT_EQ(day("1/2/1970 6:00 AM"), 1.25);
  EXPECT_EQ(day("1/2/1970 12:00 am"), 1.0);
  EXPECT_EQ(day("1/2/1970 12:00:00PM"), 1.5);
  EXPECT_EQ(day("1/2/1970 6:00 PM +06:00"), 1.5);
  for (const char* text : {"1.2.34", "20-05-12", "1234-12", "2020-5", "1/2/1970 13:00 PM",
                           "1/2/1970 0:30 AM", "1/2/1970 6:00 XM"})
    EXPECT_EQ(day(text), -1e9) << text;
}

TEST(Dates, RefusesWhatIsNone) {
  for (const char* text : {"", "2020", "2020-13-01", "2021-02-29", "2020-1", "1-2-3", "20-20-2020",
                           "2020-01-01x", "2020-01-01T25:00", "abc", "12345-01-01", "2020.5"})
    EXPECT_EQ(day(text), -1e9) << text;
}

}  // namespace
}  // namespace onnxtrain
