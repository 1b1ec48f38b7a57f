// Numbers with a currency, a unit or groups of digits.
#include "data/table/number_form.hpp"

#include <gtest/gtest.h>

namespace onnxtrain {
namespace {

std::string form(std::initializer_list<const char*> texts) {
  std::map<std::string, int64_t> all;
  for (const char* t : texts) all[t] = 1;
  const auto found = common_form(all);
  return found ? form_word(*found) : "none";
}

TEST(NumberForm, IsWhatAllTextsShare) {
  EXPECT_EQ(form({"$1,016.70", "$3", "-$5.5", "$-7"}), "number, $#");
  EXPECT_EQ(form({"12.5%", "0%", "7"}), "number, #%");
  EXPECT_EQ(form({"EUR 12", "EUR 1,200"}), "number, EUR #");
  EXPECT_EQ(form({"36 months", "60 months"}), "number, # months");
  EXPECT_EQ(form({"1.234,50 €", "3,5 €"}), "number, # €, comma");
  EXPECT_EQ(form({"1,234", "999", "12,345,678"}), "number, #");
  EXPECT_EQ(form({"3,5", "17,25"}), "number, #, comma");
  EXPECT_EQ(form({"1 234.5", "7"}), "number, #");
  EXPECT_EQ(form({"1\xC2\xA0"
                  "234,5 kr",
                  "3 kr"}),
            "number, # kr, comma");
}

TEST(NumberForm, IsNotOfNames) {
  EXPECT_EQ(form({"A12", "A13"}), "none");
  EXPECT_EQ(form({"A-12", "A-13"}), "none");
  EXPECT_EQ(form({"Name 12", "Name 13"}), "none");
  EXPECT_EQ(form({"No. 12", "No. 13"}), "none");
  EXPECT_EQ(form({"1st class", "2nd class"}), "none");
  EXPECT_EQ(form({"$5", "5 EUR"}), "none");
  EXPECT_EQ(form({"044 123 456", "044 123 457"}), "none");
  EXPECT_EQ(form({"10-12", "12-14"}), "none");
  EXPECT_EQ(form({"10:30", "11:00"}), "none");
  EXPECT_EQ(form({"1,234", "12,5", "3.5"}), "none");
  EXPECT_EQ(form({"8000 Zurich", "3000 Bern"}), "none");
  EXPECT_EQ(form({"1", "2"}), "none");
}

TEST(NumberForm, GivesTheNumber) {
  const NumberForm dollars{"$#", false}, euros{"# €", true};
  EXPECT_EQ(number_of_form("$1,016.70", dollars), 1016.70);
  EXPECT_EQ(number_of_form("-$5", dollars), -5);
  EXPECT_EQ(number_of_form("7.5", dollars), 7.5);
  EXPECT_EQ(number_of_form("1.234,50 €", euros), 1234.5);
  EXPECT_EQ(number_of_form("1.234", euros), 1234);
  EXPECT_EQ(number_of_form("5 kg", dollars), std::nullopt);
  EXPECT_EQ(number_of_form("$1,2,3", dollars), std::nullopt);
  EXPECT_EQ(number_of_form("$5", NumberForm()), std::nullopt);
}

TEST(NumberForm, IsAWordInMetadata) {
  for (const NumberForm& f : {NumberForm{}, NumberForm{"$#", false}, NumberForm{"#%", true}})
    EXPECT_EQ(form_of_word(form_word(f)), f);
  EXPECT_EQ(form_of_word("text"), std::nullopt);
}

}  // namespace
}  // namespace onnxtrain
