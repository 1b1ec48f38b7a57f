# One GoogleTest program with every *_test.cpp of src/ and tests/, and the helpers of
# tests/support. A test beside a source sees what its folder sees.
enable_testing()
find_package(GTest REQUIRED)
set(test_shards 4)

set(test_objects "")
function(onnxtrain_test_objects name folder)
  onnxtrain_objects(${name} ${ARGN})
  onnxtrain_folder_needs(${name} ${folder})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})  # "tests/support/..."
  target_link_libraries(${name} PRIVATE GTest::gtest)
  onnxtrain_level(${name} -O1)
  if(NOT folder MATCHES "^(convert|passes)$")  # their files name small models alike
    onnxtrain_joined(${name} 6)
  endif()
  if(folder STREQUAL "ops")
    onnxtrain_precompile(${name} <gtest/gtest.h> [["tests/support/op_case.hpp"]])
  elseif(NOT folder MATCHES "^(core|kernels|onnx)")  # flags of their own
    onnxtrain_precompiled_by(${name} ot_ops_test)
  endif()
endfunction()

foreach(folder IN LISTS ONNXTRAIN_FOLDERS)
  string(MAKE_C_IDENTIFIER ${folder} id)
  if(ONNXTRAIN_TEST_SOURCES_${id})
    onnxtrain_test_objects(ot_${id}_test ${folder} ${ONNXTRAIN_TEST_SOURCES_${id}})
    list(APPEND test_objects $<TARGET_OBJECTS:ot_${id}_test>)
  endif()
endforeach()
file(GLOB_RECURSE more_tests CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/tests/*_test.cpp ${CMAKE_SOURCE_DIR}/tests/support/*.cpp)
if(more_tests)
  onnxtrain_test_objects(ot_more_tests tests ${more_tests})
  list(APPEND test_objects $<TARGET_OBJECTS:ot_more_tests>)
endif()

# Commands are tested too.
add_executable(onnxtrain_tests ${test_objects} $<TARGET_OBJECTS:ot_cli> $<TARGET_OBJECTS:ot_api>)
set_target_properties(onnxtrain_tests PROPERTIES LINKER_LANGUAGE CXX)
target_link_libraries(onnxtrain_tests PRIVATE
  onnxtrain_flags onnxtrain_core GTest::gtest GTest::gtest_main)

# A few processes instead of one per test: starting one costs more than most tests.
math(EXPR last_shard "${test_shards} - 1")
foreach(shard RANGE ${last_shard})
  add_test(NAME unit_${shard} COMMAND onnxtrain_tests --gtest_brief=1
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(unit_${shard} PROPERTIES ENVIRONMENT
    "GTEST_TOTAL_SHARDS=${test_shards};GTEST_SHARD_INDEX=${shard};\
TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tools/tsan.supp;\
UBSAN_OPTIONS=print_stacktrace=1")
endforeach()

if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  return()
endif()
# The vector kernels once more without the machine's wide instructions: other widths, other tails.
add_test(NAME unit_sse4 COMMAND onnxtrain_tests --gtest_brief=1
  "--gtest_filter=Elementwise.*:Gemm.S*:Gemm.B*:Gemm.P*:Gemm.N*:Gemm.R*:HwyRuntime.*:Cells.*:Winograd.*:RecurrentKernels.*:Optim.*:Philox.*:\
Reduce.Con*:Reduce.Mid*:Rows.*:Vmath.P*:Vmath.S*:GeneralConv.*:Layout.*:FuseNorm.*:Cpu.*"
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(unit_sse4 PROPERTIES ENVIRONMENT "ONNXTRAIN_ISA=sse4;UBSAN_OPTIONS=print_stacktrace=1")
