// The version of the library, as the build knows it.
#pragma once

namespace onnxtrain {

// "0.1.0": static storage, never null.
const char* version() noexcept;

}  // namespace onnxtrain
