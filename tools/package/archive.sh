#!/usr/bin/env bash
# dist/onnxtrain-VERSION-linux-ARCH.tar.gz or the Debian package, from build/dist.
# Usage: tools/package/archive.sh TGZ|DEB
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p dist
tools/mpi_plugin.sh --all build/mpi
(cd build/dist && cpack -G "$1" -B "$PWD/packages" >cpack.log 2>&1 || { cat cpack.log; exit 1; })
case $1 in
  TGZ) pattern='*.tar.gz' ;;
  DEB) pattern='*.deb' ;;
esac
for file in build/dist/packages/$pattern; do
  cp "$file" dist/
  echo "dist/$(basename "$file")   $(du -h "$file" | cut -f1)"
done
