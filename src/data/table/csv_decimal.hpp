// Tables whose numbers are written with a decimal comma: 3,5 and 1.234,56.
#pragma once
#include <string>
#include <string_view>

namespace onnxtrain {

// Are numbers of this text written so? Some are, and none has a decimal point.
bool has_decimal_commas(std::string_view text, char separator, const std::string& source);
// The same text with decimal points in these fields; any other field stays as it is.
std::string with_decimal_points(std::string_view text, char separator);

}  // namespace onnxtrain
