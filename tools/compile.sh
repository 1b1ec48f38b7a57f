#!/usr/bin/env bash
# The compiler through ccache (CMAKE_CXX_COMPILER_LAUNCHER). GCC writes a precompiled header
# differently every time; ccache knows it by the checksum of what is in it, which is written beside
# it here: so all checkouts share what was compiled with it.
# Usage: tools/compile.sh BASE_FOLDER COMPILER ARGUMENTS...
export CCACHE_BASEDIR=$1 CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
shift
if [[ " $* " != *" -x c++-header "* ]]; then
  exec ccache "$@"
fi

output="" depfile=""
for ((k = 1; k <= $#; ++k)); do
  next=$((k + 1))
  case ${!k} in
    -o) output=${!next} ;;
    -MF) depfile=${!next} ;;
  esac
done
rm -f "$output" "$output.sum"  # else the preprocessor reads the old one
# by the files themselves: GCC tells headers that are in it by their size, which a comment changes
CCACHE_DEPEND=1 ccache "$@" || exit
{
  "$1" --version
  printf '%s\n' "${@:2}" | grep -v /  # flags, without what names a folder
  sed -e 's/^[^:]*://' -e 's/\\$//' "$depfile" | tr ' ' '\n' | grep . | sort | xargs sha256sum | cut -d' ' -f1
} | sha256sum >"$output.sum"
