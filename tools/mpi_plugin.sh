#!/usr/bin/env bash
# Builds the MPI plug-in with every mpicc there is, one library per ABI, beside the program and in the Python package.
#   tools/mpi_plugin.sh [FOLDER...]     default: build/release python/onnxtrain
set -euo pipefail
cd "$(dirname "$0")/.."
folders=("$@"); ((${#folders[@]})) || folders=(build/release python/onnxtrain)
source=src/distributed/plugin/mpi_plugin.c
built=
for mpicc in mpicc.openmpi mpicc.mpich mpicc; do
  command -v "$mpicc" >/dev/null || continue
  case $("$mpicc" -show 2>/dev/null) in
    *openmpi*|*open-mpi*|*ompi*) name=openmpi ;;
    *mpich*|*mvapich*|*impi*) name=mpich ;;
    *) "$mpicc" --showme >/dev/null 2>&1 && name=openmpi || name=mpich ;;
  esac
  [[ $built == *" $name "* ]] && continue
  built+=" $name "
  for folder in "${folders[@]}"; do
    mkdir -p "$folder"
    library=$folder/libonnxtrain_mpi_$name.so
    [[ -e $library && $library -nt $source && $library -nt ${source%.c}.h ]] && continue
    "$mpicc" -std=c11 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden "$source" -o "$library.new"
    mv "$library.new" "$library"
    echo "mpi: $library"
  done
done
[[ -n $built ]] || echo "mpi: no mpicc here, no plug-in built (Debian: apt-get install libopenmpi-dev openmpi-bin)"
