# The operator table. An operator file src/ops/THEME/NAME.cpp defines
#   void register_NAME(OpTable& table)
# and this file writes generated/op_table.cpp, which calls them all. Files without that function are
# helpers. Adding a file is enough.
file(GLOB_RECURSE op_files RELATIVE ${CMAKE_SOURCE_DIR}/src/ops CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/src/ops/*.cpp)
list(FILTER op_files EXCLUDE REGEX "_test\\.cpp$")

set(declarations "")
set(calls "")
set(names "")
foreach(file IN LISTS op_files)
  get_filename_component(name ${file} NAME_WE)
  file(STRINGS ${CMAKE_SOURCE_DIR}/src/ops/${file} registers REGEX "void register_[a-z0-9_]+\\(OpTable&")
  if(NOT registers)
    continue()  # a helper
  endif()
  if(NOT registers MATCHES "void register_${name}\\(")
    message(FATAL_ERROR "src/ops/${file}: the function must be called register_${name}: ${registers}")
  endif()
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "src/ops/${file}: the file's name must be a snake_case identifier")
  endif()
  if(name IN_LIST names)
    message(FATAL_ERROR "src/ops/${file}: another operator file has the name ${name}.cpp too")
  endif()
  list(APPEND names ${name})
endforeach()
list(SORT names)
foreach(name IN LISTS names)
  string(APPEND declarations "void register_${name}(OpTable& table);\n")
  string(APPEND calls "  ops::register_${name}(table);\n")
endforeach()

set(ONNXTRAIN_OP_TABLE ${CMAKE_BINARY_DIR}/generated/op_table.cpp)
set(text "// Made by cmake/op_table.cmake from the names of the files in src/ops.
namespace onnxtrain {

class OpTable;

namespace ops {
${declarations}}  // namespace ops

void register_all_ops(OpTable& table);
void register_all_ops([[maybe_unused]] OpTable& table) {
${calls}}

}  // namespace onnxtrain
")
set(old "")
if(EXISTS ${ONNXTRAIN_OP_TABLE})
  file(READ ${ONNXTRAIN_OP_TABLE} old)
endif()
if(NOT text STREQUAL old)
  file(WRITE ${ONNXTRAIN_OP_TABLE} "${text}")
endif()
list(LENGTH names op_count)
message(STATUS "operator files: ${op_count}")
