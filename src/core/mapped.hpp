// Mapped files that lose their end while the process reads them. A page that is gone would raise
// SIGBUS; here it becomes a page of zeros, and the mapping is marked: whoever used what was read
// asks check_mapped_files() before handing it on.
#pragma once
#include <cstddef>

namespace onnxtrain {

// Watches a mapping. False when there are too many already.
bool watch_mapping(const void* begin, size_t bytes, const char* path);
void unwatch_mapping(const void* begin);

// Gives memory back that a watched mapping takes, if this lies in one; its file has it still.
void drop_mapped_pages(const void* begin, size_t bytes);

// Throws OT4005 when a page of a mapping that is still there was missing.
void check_mapped_files();

}  // namespace onnxtrain
