# Third-party libraries as imported targets: onnxtrain_libonnx, DNNL::dnnl, ZLIB::ZLIB.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)

# Image decoders: only their headers; the libraries are opened at run time, when an image needs them.
find_package(PkgConfig REQUIRED)
pkg_check_modules(ONNXTRAIN_IMAGE REQUIRED libopenjp2 libwebp)
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)

# libonnx: static, made once per machine by tools/libonnx.sh.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/tools/libonnx.sh)
set(cross "")
if(CMAKE_CROSSCOMPILING)
  set(cross ONNXTRAIN_LIBONNX_CXX=${CMAKE_CXX_COMPILER} CMAKE_TOOLCHAIN_FILE=${CMAKE_TOOLCHAIN_FILE})
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env ONNXTRAIN_PYTHON=${Python_EXECUTABLE} ${cross}
          bash ${CMAKE_SOURCE_DIR}/tools/libonnx.sh
  OUTPUT_VARIABLE ONNXTRAIN_LIBONNX OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "tools/libonnx.sh failed")
endif()
message(STATUS "libonnx: ${ONNXTRAIN_LIBONNX}")

# protobuf is static, never the shared one: see docs/decisions/0002-protobuf-static.md.
add_library(onnxtrain_libonnx INTERFACE)
target_include_directories(onnxtrain_libonnx SYSTEM INTERFACE ${ONNXTRAIN_LIBONNX}/include)
target_compile_definitions(onnxtrain_libonnx INTERFACE ONNX_ML=1 ONNX_NAMESPACE=onnx)
target_link_libraries(onnxtrain_libonnx INTERFACE
  ${ONNXTRAIN_LIBONNX}/lib/libonnx.a ${ONNXTRAIN_LIBONNX}/lib/libonnx_proto.a
  ${ONNXTRAIN_LIBONNX}/lib/libprotobuf.a ZLIB::ZLIB Threads::Threads)

# Convolutions of any shape: oneDNN, or our own GEMMs (src/kernels/conv/conv_portable.cpp).
set(onednn_exists OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")  # what PyPI has it for
  set(onednn_exists ON)
endif()
option(ONNXTRAIN_ONEDNN "Convolutions by oneDNN" ${onednn_exists})

# oneDNN from PyPI: wherever pip put it for this interpreter (.venv, or pip's build environment).
if(ONNXTRAIN_ONEDNN)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c [[
from importlib.metadata import distribution
d = distribution("onednn-devel-cpu-gomp")
print(next(f.locate().resolve().parent for f in d.files if f.name == "dnnl-config.cmake"))]]
    OUTPUT_VARIABLE onednn_dir OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "oneDNN is not installed for ${Python_EXECUTABLE}: run tools/setup.sh build")
  endif()
  set(dnnl_DIR ${onednn_dir} CACHE PATH "oneDNN's CMake folder" FORCE)
  find_package(dnnl 3.2 REQUIRED CONFIG)
  get_filename_component(ONNXTRAIN_DNNL_LIBDIR ${onednn_dir}/../.. ABSOLUTE)
  set(ONNXTRAIN_DNNL_FILE ${ONNXTRAIN_DNNL_LIBDIR}/libdnnl.so.3)
  message(STATUS "oneDNN: ${ONNXTRAIN_DNNL_FILE}")
else()
  message(STATUS "oneDNN: not used")
endif()

# Header-only libraries live in the system's include folder: only make sure that they are there.
# Highway is used as one of them: see src/kernels/common/hwy_runtime_simd.cpp.
foreach(header hwy/highway.h CLI/CLI.hpp nlohmann/json.hpp toml++/toml.h)
  string(MAKE_C_IDENTIFIER ONNXTRAIN_HAS_${header} variable)
  find_path(${variable} ${header} REQUIRED)
endforeach()
