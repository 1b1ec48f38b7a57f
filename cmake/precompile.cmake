# Build time: headers that nearly every file reads are compiled once, and code that runs once per
# process is not optimised to the last. Files keep their own includes: builds with clang (fuzz,
# clang-tidy) compile without this.
option(ONNXTRAIN_PRECOMPILE "Precompile common headers (GCC)" ON)
option(ONNXTRAIN_JOIN "Compile small sources several at a time" ON)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(ONNXTRAIN_PRECOMPILE OFF)
endif()

# onnxtrain_precompile(TARGET HEADERS...): for this target, and for those that say
# onnxtrain_precompiled_by: they have the same flags. Headers are named as an include names them,
# quotes and all: so no path of the checkout is compiled in, and ccache works across checkouts.
function(onnxtrain_precompile target)
  if(ONNXTRAIN_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE
      <algorithm> <cmath> <cstring> <functional> <map> <memory> <string> <vector> ${ARGN})
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # ccache needs it
  endif()
endfunction()

function(onnxtrain_precompiled_by target other)
  if(ONNXTRAIN_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${other})
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
endfunction()

# onnxtrain_level(TARGET LEVEL): how far its code is optimised; -O1 where no loop over data is.
function(onnxtrain_level target level)
  if(NOT ONNXTRAIN_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo,Release>:${level}>)
  endif()
endfunction()

# onnxtrain_joined(TARGET COUNT): its sources are compiled COUNT at a time, where most of the time of
# each went into the same templates. Names in their anonymous namespaces must differ.
function(onnxtrain_joined target count)
  if(ONNXTRAIN_JOIN)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # a type of an anonymous namespace inside Impl is fine in one source only
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
    get_target_property(alone ${target} SOURCES)
    list(FILTER alone INCLUDE REGEX "_simd(_test)?\\.cpp$")  # Highway includes them several times
    if(alone)
      set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endif()
endfunction()

# A folder of src/ that became the object library `target`.
function(onnxtrain_build_time target folder)
  if(folder MATCHES "^(autodiff|convert|data|distributed|engine|graph|model|onnx|op|run)$")
    onnxtrain_joined(${target} 12)
  endif()
  if(folder STREQUAL "ops")
    onnxtrain_precompile(${target} [["op/grad_builder.hpp"]])
  elseif(folder STREQUAL "convert")
    onnxtrain_level(${target} -O1)
    onnxtrain_precompile(${target} [["op/grad_builder.hpp"]])
  elseif(folder STREQUAL "run")
    onnxtrain_level(${target} -O1)
    onnxtrain_precompiled_by(${target} ot_convert)
  elseif(folder STREQUAL "onnx")
    onnxtrain_precompile(${target} [["onnx/message/source.hpp"]] [["op/op.hpp"]])
  elseif(folder MATCHES "^(autodiff|data|distributed|engine|graph|infer|model|op|passes|plan|runtime)$")
    onnxtrain_precompiled_by(${target} ot_ops)
  endif()
endfunction()
