// Names a recipe may use, globs over parameter names, and what to say about a wrong one.
#pragma once
#include <string>
#include <vector>

#include "convert/prepare.hpp"

namespace onnxtrain {

// "did you mean 'x'?  known: a, b, c"
std::string suggestion(const std::string& word, const std::vector<std::string>& known);
// * and ? and [abc], as a shell has them; '*' crosses dots and slashes.
bool glob_match(const std::string& pattern, const std::string& name);
bool any_glob_matches(const std::vector<std::string>& patterns, const std::string& name);

const std::vector<std::string>& loss_kinds();
const std::vector<std::string>& optimizer_kinds();
// The setting of that name: of this optimizer, or of any that has it; null if none has.
const OptimizerSetting* optimizer_setting(const std::string& kind, const std::string& name);
const std::vector<std::string>& schedule_kinds();
const std::vector<std::string>& schedule_numbers();
bool is_onnx_path(const std::string& kind);
// "1,1,1": class weights that change nothing, as an example of how they are written.
std::string equal_weights(int64_t classes);

// Kinds, ranges and combinations; a usage error names the key, its value and the fix.
void check_recipe(const Recipe& r);

}  // namespace onnxtrain
