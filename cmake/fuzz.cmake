# One libFuzzer program per tests/fuzz/NAME_fuzz.cpp; seeds are in tests/fuzz/NAME/.
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp)
target_compile_options(onnxtrain_flags INTERFACE -fsanitize=fuzzer-no-link)
# Kernels never see a file; with sanitizers their vector code takes most of the compile time.
foreach(kernels ot_kernels ot_kernels_onednn)
  target_compile_options(${kernels} PRIVATE -fno-sanitize=all)
endforeach()
foreach(file IN LISTS fuzz_sources)
  get_filename_component(name ${file} NAME_WE)
  add_executable(${name} ${file})
  target_link_libraries(${name} PRIVATE onnxtrain_flags onnxtrain_core)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
endforeach()
