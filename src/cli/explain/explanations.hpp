// What each error code means, at more length than its message. A test demands one for every code in
// the sources.
#pragma once
#include <span>

namespace onnxtrain::cli {

struct Explanation {
  const char *code, *text;
};
std::span<const Explanation> graph_explanations();     // OT0xxx to OT1199
std::span<const Explanation> training_explanations();  // OT12xx to OT18xx
std::span<const Explanation> data_explanations();      // OT2xxx
std::span<const Explanation> run_explanations();       // from OT3000

}  // namespace onnxtrain::cli
