// Random changes of images while a model trains: nodes in front of the training form. The inference
// model never has them. Every number is drawn per row from the counter (core/random.hpp), so a run
// has the same bits with any number of threads, after a resume and in blocks of rows.
#pragma once
#include <string>
#include <vector>

#include "convert/step/step_builder.hpp"

namespace onnxtrain {

struct Augmentation {
  std::string kind;   // flip, crop, rotate, color, cutout, mixup, or a path ending in .onnx
  double amount = 0;  // none for a path
};

// "flip,crop:4,my.onnx". Throws OT2210 for an unknown word (with a suggestion) and OT2211 for an
// amount that makes no sense.
std::vector<Augmentation> parse_augment(const std::string& text);
// "flip:0.5, crop:4": with the amounts that were not said.
std::string augment_text(const std::string& text);

// Puts the changes between the model's image input and its training form. Returns the share of the
// row itself in a mixed row (mixup), kNone without. Throws OT2212 when no input is an image, OT2213
// when an amount is too large for the image, OT2214 for a graph of the user's that does not fit.
ValueId add_augmentation(StepBuilder& s, const std::string& augment);

// The next row of the batch in the place of every row; the first behind the last.
ValueId next_rows(StepBuilder& s, ValueId rows);

// Inverse of the distribution function of Beta(a, a) at equal steps from 0 to 1.
std::vector<float> beta_quantiles(double a, int points);

}  // namespace onnxtrain
