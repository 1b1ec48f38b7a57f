#!/usr/bin/env bash
# dist/onnxtrain-VERSION-cp3XX-cp3XX-manylinux_2_34_ARCH.whl: built for .venv's interpreter, then repaired by auditwheel
# (libgomp goes in, everything is stripped, the tag is checked against the symbols in use).
# Other interpreters: ONNXTRAIN_WHEEL_PYTHONS="python3.12 python3.13" where they are installed with pip and headers.
set -euo pipefail
cd "$(dirname "$0")/../.."
tag=manylinux_2_34_$(uname -m)
tools_env=$(tools/environment.sh package)
made=build/wheel-made
rm -rf "$made"
mkdir -p "$made" dist
log=build/wheel.log
tools/mpi_plugin.sh --all build/mpi
echo "wheel: building (log: $log)"
.venv/bin/python -m pip wheel . --disable-pip-version-check --no-build-isolation --no-deps -w "$made" >"$log" 2>&1 ||
  { tail -40 "$log"; exit 1; }
for python in ${ONNXTRAIN_WHEEL_PYTHONS:-}; do  # with a build environment of its own
  command -v "$python" >/dev/null || { echo "wheel: no $python here, skipped"; continue; }
  "$python" -m pip wheel . --disable-pip-version-check --no-deps -w "$made" >>"$log" 2>&1 || { tail -40 "$log"; exit 1; }
done
for wheel in "$made"/*.whl; do
  rm -f dist/"$(basename "${wheel%-linux*}")"-*.whl
  PATH=$tools_env/bin:$PATH "$tools_env/bin/auditwheel" repair --strip --plat "$tag" --exclude 'libmpi.so*' -w dist "$wheel" >>"$log" 2>&1 ||
    { tail -20 "$log"; exit 1; }
done
for wheel in dist/*"$tag".whl; do
  .venv/bin/python - "$wheel" <<'END'
import sys, zipfile, os
files = zipfile.ZipFile(sys.argv[1]).infolist()
print(f"wheel: {sys.argv[1]}   {os.path.getsize(sys.argv[1]) / 1e6:.1f} MB, installed {sum(f.file_size for f in files) / 1e6:.1f} MB")
END
done
