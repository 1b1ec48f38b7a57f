# One object library per folder of src/, so that third-party headers reach only the folder that
# may see them; then onnxtrain_core, the command line tool and the shared library.

# onnxtrain_objects(NAME FILES... ): an object library with our flags and include roots.
function(onnxtrain_objects name)
  add_library(${name} OBJECT ${ARGN})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(${name} PRIVATE onnxtrain_flags)
endfunction()

# What the sources of a folder may see beyond the standard library. Tests use it too.
function(onnxtrain_folder_needs target folder)
  if(folder STREQUAL "onnx")
    target_link_libraries(${target} PRIVATE onnxtrain_libonnx)
  elseif(folder STREQUAL "kernels/onednn")  # kernels/**/*_onednn.cpp
    target_link_libraries(${target} PRIVATE DNNL::dnnl)
  endif()
  if(folder MATCHES "^(core|kernels)")
    target_compile_options(${target} PRIVATE ${ONNXTRAIN_OPENMP_FLAG})
  endif()
endfunction()

# Every source by folder. The files kernels/**/*_onednn.cpp are a library of their own: only they see
# oneDNN's headers. Builds without oneDNN have kernels/**/*_portable.cpp in their place.
file(GLOB_RECURSE all_sources RELATIVE ${CMAKE_SOURCE_DIR}/src CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/src/*.cpp)
if(ONNXTRAIN_ONEDNN)
  list(FILTER all_sources EXCLUDE REGEX "^kernels/.*_portable\\.cpp$")
else()
  list(FILTER all_sources EXCLUDE REGEX "^kernels/.*_onednn\\.cpp$")
endif()
set(ONNXTRAIN_FOLDERS "")
foreach(file IN LISTS all_sources)
  if(file MATCHES "^kernels/.*_onednn\\.cpp$")
    set(folder kernels/onednn)
  elseif(file MATCHES "^([^/]+)/")
    set(folder ${CMAKE_MATCH_1})
  else()
    message(FATAL_ERROR "src/${file}: sources live in a folder of src/")
  endif()
  list(APPEND ONNXTRAIN_FOLDERS ${folder})
  string(MAKE_C_IDENTIFIER ${folder} id)
  if(file MATCHES "_test\\.cpp$")
    list(APPEND ONNXTRAIN_TEST_SOURCES_${id} ${CMAKE_SOURCE_DIR}/src/${file})
  else()
    list(APPEND sources_${id} ${CMAKE_SOURCE_DIR}/src/${file})
  endif()
endforeach()
list(REMOVE_DUPLICATES ONNXTRAIN_FOLDERS)

set(core_objects "")
foreach(folder IN LISTS ONNXTRAIN_FOLDERS)
  string(MAKE_C_IDENTIFIER ${folder} id)
  if(sources_${id} AND NOT folder MATCHES "^(cli|api)$")
    onnxtrain_objects(ot_${id} ${sources_${id}})
    onnxtrain_folder_needs(ot_${id} ${folder})
    onnxtrain_build_time(ot_${id} ${folder})
    list(APPEND core_objects $<TARGET_OBJECTS:ot_${id}>)
  endif()
endforeach()
# As system headers, so that warnings and clang-tidy leave them alone.
list(REMOVE_ITEM ONNXTRAIN_IMAGE_INCLUDE_DIRS /usr/include)  # the compiler's own; naming it again would change its order
list(TRANSFORM ONNXTRAIN_IMAGE_INCLUDE_DIRS PREPEND "-isystem" OUTPUT_VARIABLE image_headers)
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/kernels/image/jpeg2000.cpp
  ${CMAKE_SOURCE_DIR}/src/kernels/image/webp.cpp PROPERTIES COMPILE_OPTIONS "${image_headers}")
if(TARGET ot_core)
  set_property(SOURCE ${CMAKE_SOURCE_DIR}/src/core/version.cpp APPEND PROPERTY
    COMPILE_DEFINITIONS ONNXTRAIN_VERSION="${PROJECT_VERSION}")
endif()
onnxtrain_objects(ot_op_table ${ONNXTRAIN_OP_TABLE} ${ONNXTRAIN_PAGE})

# Everything but the interfaces. Its users get the include roots and the libraries to link, but
# not the include folders of libonnx and oneDNN.
add_library(onnxtrain_core STATIC ${core_objects} $<TARGET_OBJECTS:ot_op_table>)
set_target_properties(onnxtrain_core PROPERTIES LINKER_LANGUAGE CXX)
target_include_directories(onnxtrain_core PUBLIC
  ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(onnxtrain_core PUBLIC
  $<LINK_ONLY:onnxtrain_libonnx> $<$<BOOL:${ONNXTRAIN_ONEDNN}>:$<LINK_ONLY:DNNL::dnnl>>
  ZLIB::ZLIB Threads::Threads)
if(ONNXTRAIN_OPENMP_FLAG STREQUAL "-fopenmp")
  target_link_options(onnxtrain_core INTERFACE -fopenmp)
endif()

# The commands; the tests link them too, all but main().
set(cli_without_main ${sources_cli})
list(FILTER cli_without_main EXCLUDE REGEX "/cli/onnxtrain\\.cpp$")
onnxtrain_objects(ot_cli ${cli_without_main})
onnxtrain_precompile(ot_cli [["engine/training.hpp"]] <CLI/CLI.hpp> <nlohmann/json.hpp>)
onnxtrain_level(ot_cli -O1)
onnxtrain_joined(ot_cli 14)
onnxtrain_objects(ot_main ${CMAKE_SOURCE_DIR}/src/cli/onnxtrain.cpp)
onnxtrain_level(ot_main -O1)
# The C API. Its objects also go into the Python module.
onnxtrain_objects(ot_api ${sources_api})
target_compile_definitions(ot_api PRIVATE ONNXTRAIN_BUILDING)
onnxtrain_level(ot_api -O1)
onnxtrain_joined(ot_api 6)

# A shared object of ours: its list of exported names, and nothing of a static library leaks.
function(onnxtrain_exports target script)
  target_link_options(${target} PRIVATE
    -Wl,--exclude-libs,ALL -Wl,--version-script=${script})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
endfunction()

# In a wheel the library carries the commands too (entry.cpp): program and Python module share it.
add_library(onnxtrain_shared SHARED $<TARGET_OBJECTS:ot_api>
  $<$<BOOL:${SKBUILD}>:$<TARGET_OBJECTS:ot_cli>>)
set_target_properties(onnxtrain_shared PROPERTIES
  OUTPUT_NAME onnxtrain EXPORT_NAME onnxtrain LINKER_LANGUAGE CXX)
if(NOT SKBUILD)
  set_target_properties(onnxtrain_shared PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
endif()
target_include_directories(onnxtrain_shared PUBLIC
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_libraries(onnxtrain_shared PRIVATE $<BUILD_INTERFACE:onnxtrain_core>)
onnxtrain_exports(onnxtrain_shared ${CMAKE_SOURCE_DIR}/src/api/exports.map)
if(NOT ONNXTRAIN_SANITIZE)
  target_link_options(onnxtrain_shared PRIVATE -Wl,-z,defs)
endif()

add_executable(onnxtrain_cli $<TARGET_OBJECTS:ot_main>
  $<$<NOT:$<BOOL:${SKBUILD}>>:$<TARGET_OBJECTS:ot_cli>>)
set_target_properties(onnxtrain_cli PROPERTIES OUTPUT_NAME onnxtrain LINKER_LANGUAGE CXX)
# a plug-in of another version than the program does not load: it is built with it where an mpicc is
add_custom_command(TARGET onnxtrain_cli POST_BUILD
  COMMAND tools/mpi_plugin.sh ${CMAKE_BINARY_DIR} python/onnxtrain
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} VERBATIM)
if(SKBUILD)
  target_link_libraries(onnxtrain_cli PRIVATE onnxtrain_flags onnxtrain_shared)
else()
  target_link_libraries(onnxtrain_cli PRIVATE onnxtrain_flags onnxtrain_core)
endif()

if(ONNXTRAIN_STATIC_RUNTIME)
  target_sources(onnxtrain_shared PRIVATE ${CMAKE_SOURCE_DIR}/tools/package/arc4random.cpp)
  if(NOT SKBUILD)
    target_sources(onnxtrain_cli PRIVATE ${CMAKE_SOURCE_DIR}/tools/package/arc4random.cpp)
  endif()
endif()
