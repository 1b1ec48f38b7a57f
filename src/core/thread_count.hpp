// How many threads a user may ask for.
#pragma once

namespace onnxtrain {

// The number to use when somebody asks for `asked` (0: default_threads()). A usage error when it is
// negative or far more than this machine can run.
int thread_count(int asked);

}  // namespace onnxtrain
