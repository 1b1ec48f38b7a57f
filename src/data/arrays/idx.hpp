// MNIST's idx files, plain or gzip.
#pragma once
#include "data/columns/dataset.hpp"

namespace onnxtrain {

ColumnPtr open_idx(const std::string& path);
// An idx file alone, or images with the labels beside them (train-images... and train-labels...).
Dataset open_idx_file(const std::string& path);
// A folder with train-images*, train-labels*, t10k-images*, t10k-labels*; false when there are
// none.
bool open_idx_folder(const std::string& folder, DataPart part, Dataset& out);
// Do the (decompressed) first four bytes begin an idx file?
bool looks_like_idx(std::string_view head);

}  // namespace onnxtrain
