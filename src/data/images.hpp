// Image folders: one subfolder per class, or images alone for prediction.
#pragma once
#include "data/dataset.hpp"

namespace onnxtrain {

// folder/CLASS/image.png, folder/train/CLASS/..., folder/test/CLASS/..., or folder/image.png
// without labels. Columns: x, bytes [C,H,W] (or [H,W,C]), and y, the number of the class in sorted
// order. `row`: what the model wants of one row; its image size is the size all are resampled to
// (empty or open: all images must be of one size, or `largest` says otherwise). False when the
// folder holds no images. A subfolder without images is refused (OT2161): the classes behind it
// would be numbered wrongly. largest: of OpenOptions::largest_side.
bool open_image_folder(const std::string& folder, DataPart part, const Shape& row, int64_t largest,
                       Dataset& out);

// One image, to predict for.
Dataset open_image(const std::string& path, const Shape& row);
bool is_image_name(const std::string& path);  // by its ending

// Interleaved pixels resampled with a triangle filter that widens when the image shrinks.
std::vector<uint8_t> resample(const std::vector<uint8_t>& pixels, int64_t height, int64_t width,
                              int64_t channels, int64_t to_height, int64_t to_width);

}  // namespace onnxtrain
