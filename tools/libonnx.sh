#!/usr/bin/env bash
# Builds libonnx as static libraries from its PyPI source distribution, once per machine.
# Prints the install prefix as the only line on stdout; progress goes to stderr.
#
# Cache: ${ONNXTRAIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onnxtrain}/libonnx-VERSION-KEY
# KEY covers this script, the compiler and protobuf. Two builds at once: the second waits.
set -euo pipefail
version=1.23.2
sha256=008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8
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
launcher=$(command -v ccache || true)
work=$(mktemp -d "$cache/.libonnx-$key.XXXXXX")
trap 'rm -rf "$work"' EXIT
start=$SECONDS

say "version $version is not cached on this machine; building it once (several minutes)"
say "1/4 downloading the source distribution"
"$python" -m pip download --disable-pip-version-check -q --no-deps --no-binary onnx -d "$work" "onnx==$version" >&2 ||
  die "download failed (is there a network or a package index?)"
echo "$sha256  $work/onnx-$version.tar.gz" | sha256sum -c --quiet - >&2 ||
  die "onnx-$version.tar.gz is not the expected file (sha256 differs)"
tar -xzf "$work/onnx-$version.tar.gz" -C "$work"

say "2/4 configuring"
cmake -S "$work/onnx-$version" -B "$work/build" -G Ninja \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=20 -DCMAKE_CXX_COMPILER="$cxx" \
  ${launcher:+-DCMAKE_CXX_COMPILER_LAUNCHER="$launcher"} \
  -DCMAKE_CXX_FLAGS="-ffunction-sections -fdata-sections -ffile-prefix-map=$work=." \
  -DBUILD_SHARED_LIBS=OFF -DONNX_USE_PROTOBUF_SHARED_LIBS=OFF -DProtobuf_USE_STATIC_LIBS=ON \
  -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_CXX_VISIBILITY_PRESET=hidden \
  -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON -DONNX_NAMESPACE=onnx -DONNX_ML=ON \
  -DONNX_GEN_PB_TYPE_STUBS=OFF -DCMAKE_INSTALL_LIBDIR=lib \
  -DPython3_EXECUTABLE="$python" -DPython_EXECUTABLE="$python" \
  -DCMAKE_INSTALL_PREFIX="$work/inst" >"$work/configure.log" 2>&1 ||
  { tail -40 "$work/configure.log" >&2; die "configure failed"; }

say "3/4 compiling"
NINJA_STATUS='libonnx: [%f/%t, %e s] ' cmake --build "$work/build" >&2 || die "build failed"

say "4/4 installing into $prefix"
cmake --install "$work/build" >/dev/null
touch "$work/inst/.complete"
rm -rf "$prefix"
mv -T "$work/inst" "$prefix"
say "done in $((SECONDS - start)) s"
echo "$prefix"
