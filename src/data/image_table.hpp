// Images that a table names: a column of file names, the targets beside it.
#pragma once
#include <optional>

#include "data/open.hpp"

namespace onnxtrain {

// The images that a table stands for, with its targets; nullopt when no column names images, or
// when the model takes the columns as they are. The names are paths below options.images.folder, or
// beside the table. Throws OT2207 when an image is not there, or when two columns name some.
std::optional<Dataset> open_image_table(std::string_view text, const std::string& path,
                                        const OpenOptions& options);

}  // namespace onnxtrain
