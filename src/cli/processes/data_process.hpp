// What the Python side reads for data: parquet tables, text by a tokenizer.
#pragma once

namespace onnxtrain::cli {

// From now on parquet files and texts are handed to a Python process, which starts when the first
// one comes.
void use_python_for_data();

}  // namespace onnxtrain::cli
