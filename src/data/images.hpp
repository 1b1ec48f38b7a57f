// Image folders: one subfolder per class, or images alone for prediction.
#pragma once
#include "data/open.hpp"

namespace onnxtrain {

// folder/CLASS/image.png, folder/train/CLASS/..., folder/test/CLASS/..., or folder/image.png
// without labels. Columns: x, bytes or numbers [C,H,W] (or [H,W,C]), and y, the number of the class
// in sorted order. x_shape: what the model wants of one row; its image size is the size all are
// resampled to (empty or open: all images must be of one size, or largest_side says otherwise).
// False when the folder holds no images. A subfolder without images is refused (OT2161): the
// classes behind it would be numbered wrongly. A damaged image is named (OT1190, OT1191), or left
// out with a note; OT2200 when none is left, OT2201 when a class has none left.
bool open_image_folder(const std::string& folder, const OpenOptions& options, Dataset& out);

// Images by their paths, as the column x, with the paths as names of the rows. root: the folder
// that identities of images are told from; "": that of each image. several: of different sizes
// perhaps.
Dataset images_at(const std::string& source, const std::vector<std::string>& paths,
                  const OpenOptions& options, bool several, const std::string& root = "");
// Which of these can be read, 1 or 0 for each; bad: what is wrong with the others.
std::vector<char> readable_images(const std::vector<std::string>& paths,
                                  std::vector<std::string>& bad);
// OT2200, when all of them are damaged.
[[noreturn]] void none_readable(const std::string& where, const std::vector<std::string>& bad);
// "2 damaged images of 10 are left out: ..."
std::string skipped_note(const std::vector<std::string>& bad, size_t all);

// "classes in order: 'cat', 'dog'" of images by folder, as they are numbered now; else "".
std::string class_order(const Dataset& data, const std::string& column);

// One image, to predict for.
Dataset open_image(const std::string& path, const OpenOptions& options);
// The image as it is, bytes [1, channels, height, width]; one channel: grey.
Tensor image_tensor(const std::string& path, int64_t channels);

// Interleaved pixels resampled with a triangle filter that widens when the image shrinks. scale:
// how much larger the result is, when its size was rounded; 0: by the sizes.
std::vector<float> resample(const std::vector<uint8_t>& pixels, int64_t height, int64_t width,
                            int64_t channels, int64_t to_height, int64_t to_width,
                            double scale = 0);
// The same by a rule of ImageReading: what the nodes of a model with such a rule do.
std::vector<float> resized(const std::vector<uint8_t>& pixels, int64_t height, int64_t width,
                           int64_t channels, int64_t to_height, int64_t to_width,
                           const std::string& rule);

}  // namespace onnxtrain
