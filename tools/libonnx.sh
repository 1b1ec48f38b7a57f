#!/usr/bin/env bash
# Builds libonnx as static libraries from its PyPI source distribution, once per machine, and
# puts a libprotobuf.a beside it that can be linked into a shared object.
# Prints the install prefix as the only line on stdout; progress goes to stderr.
#
# Why not Debian's libprotobuf.a as it is: it is compiled for executables (-fPIE), so it cannot
# become part of a shared object. The same version is compiled here from the sources in the
# grpcio-tools source distribution, with Debian's headers and protoc in use everywhere else.
# See docs/decisions/0002-protobuf-static.md.
#
# Cache: ${ONNXTRAIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onnxtrain}/libonnx-VERSION-KEY
# KEY covers this script, the compiler and protobuf. Two builds at once: the second waits.
set -euo pipefail
version=1.23.2
sha256=008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8
protobuf_version=3.21.12
protobuf_sdist=grpcio-tools-1.53.2
protobuf_sha256=1b10f95d1f4af2b9d63c9beccf386b3a5e1a92f14b3f64a9a8385b6ba091e0dc
here=$(cd "$(dirname "$0")" && pwd)

say() { printf 'libonnx: %s\n' "$*" >&2; }
die() { printf 'libonnx: error: %s\n' "$*" >&2; exit 1; }

# The compiler is the machine's default one on purpose: the clang builds (fuzz, lint) share
# the library with the ordinary build.
cxx=${ONNXTRAIN_LIBONNX_CXX:-c++}
cache=${ONNXTRAIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onnxtrain}
key=$({ cat "$here/libonnx.sh"; "$cxx" --version; protoc --version; } | sha256sum | cut -c1-12)
prefix=$cache/libonnx-$version-$key
if [[ -e $prefix/.complete ]]; then
  echo "$prefix"
  exit 0
fi

mkdir -p "$cache"
exec 9>"$cache/.libonnx-$key.lock"
if ! flock -n 9; then
  say "another build is making it; waiting"
  flock 9
fi
if [[ -e $prefix/.complete ]]; then  # the other build has made it
  echo "$prefix"
  exit 0
fi

python=${ONNXTRAIN_PYTHON:-$here/../.venv/bin/python}
[[ -x $python ]] || python=python3
work=$(mktemp -d "$cache/.libonnx-$key.XXXXXX")
trap 'rm -rf "$work"' EXIT
start=$SECONDS

say "version $version is not cached on this machine; building it once (several minutes)"
# How both libraries are compiled: static, but fit to be a hidden part of a shared object.
# -O2 for protobuf, which reads every byte of a file; libonnx has no loop over data, and -O1 takes
# a quarter off its minutes.
common=(-G Ninja -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_CXX_COMPILER="$cxx" -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON
  -DCMAKE_CXX_VISIBILITY_PRESET=hidden -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON
  -DCMAKE_CXX_FLAGS="-w -ffunction-sections -fdata-sections -ffile-prefix-map=$work=.")
if command -v ccache >/dev/null; then
  common+=(-DCMAKE_CXX_COMPILER_LAUNCHER="$here/compile.sh;$work")
fi

# fetch NAME VERSION SHA256: the source distribution from the package index, unpacked into $work.
fetch() {
  # pip prepares the metadata of what it downloads; old packages need an old setuptools for that.
  echo "setuptools==69.5.1" >"$work/constraints.txt"
  PIP_CONSTRAINT=$work/constraints.txt PIP_BUILD_CONSTRAINT=$work/constraints.txt \
    "$python" -m pip download --disable-pip-version-check -q --no-deps --no-binary "$1" -d "$work" "$1==$2" >&2 ||
    die "download of $1 $2 failed (is there a network or a package index?)"
  echo "$3  $work/$1-$2.tar.gz" | sha256sum -c --quiet - >&2 ||
    die "$1-$2.tar.gz is not the expected file (sha256 differs)"
  tar -xzf "$work/$1-$2.tar.gz" -C "$work"
}

[[ $(protoc --version) == "libprotoc $protobuf_version" ]] ||
  die "protobuf $protobuf_version is needed, this machine has $(protoc --version)"

say "1/4 protobuf $protobuf_version: downloading and compiling"
fetch "${protobuf_sdist%-*}" "${protobuf_sdist##*-}" "$protobuf_sha256"
mkdir "$work/protobuf"
protobuf_src=$work/$protobuf_sdist/third_party/protobuf/src
# The installed headers (Debian has small changes in them) are what all other code sees.
headers=${ONNXTRAIN_PROTOBUF_INCLUDE:-/usr/include}
[[ -f $headers/google/protobuf/message.h ]] || die "no protobuf headers in $headers (Debian: libprotobuf-dev)"
cp -rT "$headers/google/protobuf" "$protobuf_src/google/protobuf"
cat >"$work/protobuf/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(protobuf LANGUAGES CXX)
find_package(Threads REQUIRED)
# The runtime library without the compiler, the tests and the Windows parts, and without what neither
# libonnx nor we link (JSON, well-known types, services): half of the files. Something that is missed
# here is an undefined symbol when our programs are linked.
file(GLOB_RECURSE files ${SRC}/google/protobuf/*.cc)
list(FILTER files EXCLUDE REGEX "/compiler/|/testing/|_test|test_util|unittest|win32|/python/")
list(FILTER files EXCLUDE REGEX "/(util/internal|util/[^/]*(json|time|mask|delimited|resolver)[^/]*)")
list(FILTER files EXCLUDE REGEX "/(any|api|duration|empty|field_mask|source_context|struct|timestamp|type|wrappers)[.]pb[.]cc")
list(FILTER files EXCLUDE REGEX "/(service|gzip_stream)[.]cc")
add_library(protobuf STATIC ${files})
target_include_directories(protobuf PRIVATE ${SRC})
target_compile_definitions(protobuf PRIVATE HAVE_PTHREAD=1 HAVE_ZLIB=1)
END
cmake -S "$work/protobuf" -B "$work/protobuf/build" -DCMAKE_CXX_STANDARD=17 \
  -DSRC="$protobuf_src" -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" "${common[@]}" >"$work/configure.log" 2>&1 ||
  { tail -40 "$work/configure.log" >&2; die "configure of protobuf failed"; }
NINJA_STATUS="protobuf: [%f/%t, %e s] " cmake --build "$work/protobuf/build" >&2 || die "build of protobuf failed"

say "2/4 libonnx: downloading the source distribution, configuring"
fetch onnx "$version" "$sha256"
# Most of the time of its 60 files is the same headers: they are compiled once.
cat >"$work/precompile.cmake" <<'END'
cmake_language(DEFER CALL target_precompile_headers onnx PRIVATE
  <algorithm> <functional> <map> <string> <vector> [["onnx/defs/function.h"]] [["onnx/defs/schema.h"]]
  [["onnx/defs/parser.h"]] [["onnx/defs/tensor_proto_util.h"]])
cmake_language(DEFER CALL target_compile_options onnx PRIVATE -fpch-preprocess)
END
cmake -S "$work/onnx-$version" -B "$work/build" -DCMAKE_CXX_STANDARD=20 -DCMAKE_PROJECT_INCLUDE="$work/precompile.cmake" \
  -DONNX_USE_PROTOBUF_SHARED_LIBS=OFF -DProtobuf_USE_STATIC_LIBS=ON \
  -DProtobuf_LIBRARY="$work/protobuf/build/libprotobuf.a" \
  -DONNX_NAMESPACE=onnx -DONNX_ML=ON -DONNX_GEN_PB_TYPE_STUBS=OFF \
  -DPython3_EXECUTABLE="$python" -DPython_EXECUTABLE="$python" \
  -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_INSTALL_PREFIX="$work/inst" -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" \
  "${common[@]}" >"$work/configure.log" 2>&1 ||
  { tail -40 "$work/configure.log" >&2; die "configure failed"; }

say "3/4 compiling"
NINJA_STATUS="libonnx: [%f/%t, %e s] " cmake --build "$work/build" >&2 || die "build failed"

say "4/4 installing into $prefix"
cmake --install "$work/build" >/dev/null
cp "$work/protobuf/build/libprotobuf.a" "$work/inst/lib/"
touch "$work/inst/.complete"
rm -rf "$prefix"
mv -T "$work/inst" "$prefix"
say "done in $((SECONDS - start)) s"
echo "$prefix"
