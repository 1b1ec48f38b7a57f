// Settings that are allowed and with which hardly anything is learnt.
#pragma once
#include "convert/prepare.hpp"

namespace onnxtrain {

// Each is true of the recipe alone, or of the model's own Dropout: none needs the data.
std::vector<OddSetting> odd_settings(const Recipe& r, const Model& m);

// What the schedule of a recipe does to a training of so many updates; text is empty when it does
// what its numbers say.
OddSetting odd_schedule(const Recipe& r, int64_t updates);

}  // namespace onnxtrain
