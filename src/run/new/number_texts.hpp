// Numbers that are written so that they are text: $1,200, 12.345,50 EUR, 85 m2, 3.5 %.
#pragma once
#include <string>
#include <vector>

namespace onnxtrain::run {

// "numbers? write 1200 instead of '$1,200'" when nearly all of these are such; "" otherwise.
std::string numbers_in_texts(const std::vector<std::string>& texts);

}  // namespace onnxtrain::run
