# The page of reports: src/run/report/page/*.css and *.js become strings in generated/page_files.cpp.
function(onnxtrain_page_string variable)
  set(text "")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} content)
    string(APPEND text "${content}")
  endforeach()
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

set(page ${CMAKE_SOURCE_DIR}/src/run/report/page)
onnxtrain_page_string(style ${page}/page.css)
onnxtrain_page_string(script ${page}/words.js ${page}/chart.js ${page}/sections.js ${page}/page.js)
set(ONNXTRAIN_PAGE ${CMAKE_BINARY_DIR}/generated/page_files.cpp)
file(CONFIGURE OUTPUT ${ONNXTRAIN_PAGE} @ONLY CONTENT [[// Made by cmake/page.cmake from src/run/report/page.
#include "run/report/page_files.hpp"

namespace onnxtrain::run {

const char* page_style() {
  return R"onnxtrain(@style@)onnxtrain";
}
const char* page_script() {
  return R"onnxtrain(@script@)onnxtrain";
}

}  // namespace onnxtrain::run
]])
