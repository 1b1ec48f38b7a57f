// TensorBoard's event files: scalars in length-prefixed records with masked CRC-32C.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onnxtrain::run {

// One record of a file: the event's bytes framed with lengths and checksums.
std::string event_record(std::string_view event);
// The first event of every file.
std::string version_event(double wall_time);
std::string scalars_event(double wall_time, int64_t step,
                          const std::vector<std::pair<std::string, double>>& scalars);
uint32_t crc32c(std::string_view bytes);

}  // namespace onnxtrain::run
