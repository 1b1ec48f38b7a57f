// Where an error was thrown, for people who look for a fault in the program (-vv).
#pragma once
#include <string>

namespace onnxtrain {

// Errors made from now on are remembered with the calls that led to them.
void set_error_traces(bool on);
// Of the error made last, one call per line; "" when there is none or nothing was remembered.
std::string last_error_trace();

}  // namespace onnxtrain
