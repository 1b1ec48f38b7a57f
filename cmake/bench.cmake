# One Google Benchmark program with every bench/**/*_bench.cpp; none there, none built.
file(GLOB_RECURSE bench_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*_bench.cpp)
if(bench_sources)
  find_package(benchmark REQUIRED)
  add_executable(onnxtrain_bench ${bench_sources})
  target_link_libraries(onnxtrain_bench PRIVATE
    onnxtrain_flags onnxtrain_core benchmark::benchmark_main)
endif()
