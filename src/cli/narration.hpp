// Words on stderr, shared by the commands.
#pragma once
#include <string>

#include "core/text.hpp"

namespace onnxtrain::cli {

// stdout: results; stderr: narration. A label padded to 10 columns, then text.
void say(const std::string& label, const std::string& text);
void warn(const std::string& code, const std::string& text, const std::string& hint = {});
bool quiet();
void set_quiet(bool q);
// AVX-512, AVX2 or baseline
std::string simd_name();
// A run folder -> its best (or last) checkpoint; anything else as it is. OT4102 when the folder is
// no run.
std::string checkpoint_of(const std::string& run_or_file, const std::string& which = "best");

}  // namespace onnxtrain::cli
