# One libFuzzer program per tests/fuzz/NAME_fuzz.cpp; seeds are in tests/fuzz/NAME/.
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp)
target_compile_options(onnxtrain_flags INTERFACE -fsanitize=fuzzer-no-link)
# What only runs and trains models never sees the bytes of a file, and takes most of the compile time.
foreach(layer kernels kernels_onednn passes plan runtime autodiff engine convert data run)
  target_compile_options(ot_${layer} PRIVATE -fno-sanitize=all -O0 -g0)
endforeach()
add_custom_target(fuzzers)
foreach(file IN LISTS fuzz_sources)
  get_filename_component(name ${file} NAME_WE)
  add_executable(${name} ${file})
  add_dependencies(fuzzers ${name})
  target_link_libraries(${name} PRIVATE onnxtrain_flags onnxtrain_core gomp)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
endforeach()
