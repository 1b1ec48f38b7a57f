// Small things about text that several folders need.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace onnxtrain {

// How many letters must be inserted, removed, replaced or exchanged with their neighbour to make
// one word of the other.
size_t edit_distance(std::string_view a, std::string_view b);

// 1234567 -> "1,234,567"
std::string with_commas(int64_t n);

// "1.50 MB"; a megabyte is a million bytes.
std::string megabytes(size_t bytes, int digits);

// Where the first byte stands that is not part of UTF-8; npos when all are.
size_t find_invalid_utf8(std::string_view s);

// In double quotes, as JSON and TOML have it.
std::string in_quotes(std::string_view s);

}  // namespace onnxtrain
