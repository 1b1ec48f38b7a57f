# The operator table. Each src/ops/**/NAME.cpp exports
#   void onnxtrain::ops::register_NAME(onnxtrain::OpTable&);
# and this file writes generated/op_table.cpp, which calls them all. Not operators:
# NAME_test.cpp, NAME_common.cpp, NAME_detail.cpp. Adding a file is enough.
file(GLOB_RECURSE op_files RELATIVE ${CMAKE_SOURCE_DIR}/src/ops CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/src/ops/*.cpp)
list(FILTER op_files EXCLUDE REGEX "_(test|common|detail)\\.cpp$")

set(declarations "")
set(calls "")
set(names "")
foreach(file IN LISTS op_files)
  get_filename_component(name ${file} NAME_WE)
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
