# Toolchain for 64-bit ARM Linux with Debian's cross compiler (g++-aarch64-linux-gnu); tests run in
# QEMU (qemu-user-static). Libraries come from tools/sysroot.sh, headers from the machine's own
# packages where they are the same for every processor. See docs/arm.md.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

if(NOT DEFINED ENV{ONNXTRAIN_SYSROOT})  # once per configuration; CMake reads this file several times
  execute_process(COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/../tools/sysroot.sh arm64
    OUTPUT_VARIABLE sysroot OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(ENV{ONNXTRAIN_SYSROOT} ${sysroot})
endif()
set(sysroot $ENV{ONNXTRAIN_SYSROOT})
list(PREPEND CMAKE_PREFIX_PATH ${sysroot}/usr)
set(ZLIB_INCLUDE_DIR ${sysroot}/usr/include CACHE PATH "")
set(ZLIB_LIBRARY ${sysroot}/usr/lib/aarch64-linux-gnu/libz.a CACHE FILEPATH "")
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${sysroot}/usr/include/aarch64-linux-gnu)  # zconf.h
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

# /usr/aarch64-linux-gnu: the C and C++ runtime of the cross compiler. The image libraries are opened
# at run time.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu
  -E LD_LIBRARY_PATH=/usr/aarch64-linux-gnu/lib:${sysroot}/usr/lib/aarch64-linux-gnu)
