# Compile and link options of our own sources; third-party code is not touched by them.
add_library(onnxtrain_flags INTERFACE)

target_compile_options(onnxtrain_flags INTERFACE
  -Wall -Wextra -Werror
  -ffp-contract=off            # a*b+c means the same everywhere; kernels ask for FMA by name
  -ffunction-sections -fdata-sections
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
target_link_options(onnxtrain_flags INTERFACE -Wl,--gc-sections)

# Ordinary code runs on any x86-64 since 2009; faster instructions are chosen at run time.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(onnxtrain_flags INTERFACE -march=x86-64-v2 -mtune=generic)
endif()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  target_compile_options(onnxtrain_flags INTERFACE -fsigned-char)  # as on x86
  # Highway compiles for NEON alone, which every one has, and asks for no optional instructions.
  target_compile_definitions(onnxtrain_flags INTERFACE TOOLCHAIN_MISS_SYS_AUXV_H)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports these inside std::string and std::vector of its own library.
  target_compile_options(onnxtrain_flags INTERFACE
    -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
endif()

# Pragmas of OpenMP are used in core/ and kernels/ only. GCC's runtime, libgomp, is the one
# oneDNN is built for; clang would bring a second one, so its builds ignore the pragmas.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(ONNXTRAIN_OPENMP_FLAG -fopenmp)
else()
  set(ONNXTRAIN_OPENMP_FLAG -Wno-unknown-pragmas)
endif()

if(ONNXTRAIN_SANITIZE)
  add_compile_options(-fsanitize=${ONNXTRAIN_SANITIZE})
  add_link_options(-fsanitize=${ONNXTRAIN_SANITIZE})
  if(ONNXTRAIN_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # Sanitized code confuses GCC's flow analysis; the release build still has these warnings.
      target_compile_options(onnxtrain_flags INTERFACE -Wno-maybe-uninitialized)
    endif()
  endif()
  if(ONNXTRAIN_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(onnxtrain_flags INTERFACE -Wno-tsan)
  endif()
endif()

# What is given to others needs no C++ runtime of a certain age. Same code, other place: no number changes.
if(ONNXTRAIN_STATIC_RUNTIME)
  add_link_options(-static-libstdc++)  # libgcc stays shared: its unwinder would ask for glibc 2.35
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The base folder makes checkouts in different places share their cached objects.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/tools/compile.sh ${CMAKE_SOURCE_DIR})
endif()
