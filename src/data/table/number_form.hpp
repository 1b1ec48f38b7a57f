// Numbers that are written with a currency, a unit or groups of digits: $1,234.50, 12 %, 5 kg.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace onnxtrain {

// How the numbers of a column are written.
struct NumberForm {
  std::string around;  // "$#", "#%", "# kg"; "#": groups of digits alone; "": plain numbers
  bool comma = false;  // 1.234,50 and not 1,234.50
  bool operator==(const NumberForm&) const = default;
};

// The number of this form, or a plain one; nullopt for anything else, also for another unit.
std::optional<double> number_of_form(std::string_view text, const NumberForm& form);

// The one form that all texts have, plain numbers among them; nullopt when there is none. Where
// 1,234 can be read in two ways it has groups of digits.
std::optional<NumberForm> common_form(const std::map<std::string, int64_t>& texts);

// With all digits that were written: 102201.42.
std::string all_digits(double v);

// "number", "number, $#" or "number, #%, comma", and back; nullopt for other words.
std::string form_word(const NumberForm& form);
std::optional<NumberForm> form_of_word(const std::string& word);

}  // namespace onnxtrain
