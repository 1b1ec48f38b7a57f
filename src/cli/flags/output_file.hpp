// Names of files that commands write.
#pragma once
#include <string>
#include <vector>

namespace onnxtrain::cli {

// A name whose ending says another format than the one that is written is refused (OT0011).
// endings: those that fit; a name without a known ending is fine when `others`.
void check_ending(const std::string& path, const std::vector<std::string>& endings, bool others,
                  const std::string& flag = "-o");

}  // namespace onnxtrain::cli
