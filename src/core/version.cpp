// The version comes from CMakeLists.txt, the only place where it is written.
#include "core/version.hpp"

namespace onnxtrain {

const char* version() noexcept { return ONNXTRAIN_VERSION; }

}  // namespace onnxtrain
