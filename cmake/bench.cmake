# One Google Benchmark program with every bench/**/*_bench.cpp; none there, none built.
file(GLOB_RECURSE bench_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*_bench.cpp)
if(bench_sources)
  find_package(benchmark REQUIRED)
  add_executable(onnxtrain_bench ${bench_sources})
  target_link_libraries(onnxtrain_bench PRIVATE
    onnxtrain_flags onnxtrain_core benchmark::benchmark_main)
endif()

# bench/cold_start.cpp, made on demand:  cmake --build build/release --target cold_start
add_executable(cold_start EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/cold_start.cpp)
target_link_libraries(cold_start PRIVATE onnxtrain_flags onnxtrain_shared)
target_include_directories(cold_start PRIVATE ${CMAKE_SOURCE_DIR}/include)
