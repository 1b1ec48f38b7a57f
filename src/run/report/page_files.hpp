// The files of page/, as they are compiled in (cmake/page.cmake).
#pragma once

namespace onnxtrain::run {

const char* page_style();
const char* page_script();

}  // namespace onnxtrain::run
