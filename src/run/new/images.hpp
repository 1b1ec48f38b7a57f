// Images for a new network, or in front of one that is there: size, channels, scale.
#pragma once
#include <string>
#include <vector>

#include "run/new/model.hpp"

namespace onnxtrain::run {

struct Spread {
  std::vector<float> mean, std;
};
// Of every channel, or of every element of a row of numbers. channel_axis: of the row; -1: every
// element on its own.
Spread measure(const Column& c, int64_t channel_axis);

void set_image_options(const NewRequest& q, OpenOptions& open);
// The size that the model's input declares, for the images that are opened.
void set_size_of(const Model& m, const std::string& input, OpenOptions& open);

// Images that have no colours get one channel. Says size and rule.
Dataset with_channels(const NewRequest& q, const Dataset& images, OpenOptions open,
                      Observer& observer);

// The model takes images of any size. row: [channels, height, width] of the network.
Model resized_in_model(const Model& m, const NewRequest& q, const Shape& row);

// Resizing and scaling in front of a model's only input. Throws OT2203 when it takes no images
// [N,C,H,W] of a known size.
Model images_in_front(const Model& m, const std::string& input, const NewRequest& q,
                      const Dataset& images, Observer& observer);

}  // namespace onnxtrain::run
