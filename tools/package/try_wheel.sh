#!/usr/bin/env bash
# The wheel of dist/ where nothing else is: in a fresh virtual environment, and in a bare Debian root (debootstrap; as root).
# Installs it, runs the demo and prints the times.
set -euo pipefail
cd "$(dirname "$0")/../.."
wheel=$(ls -t dist/onnxtrain-*-cp311-*.whl 2>/dev/null | head -1)
[[ -n $wheel ]] || { echo "no wheel in dist/: make wheel"; exit 1; }
wheel=$PWD/$wheel
work=$(mktemp -d)
trap 'umount "$work/root/proc" 2>/dev/null || true; rm -rf "$work"' EXIT
seconds() { date +%s.%N; }
took() { awk -v a="$1" -v b="$(seconds)" 'BEGIN { printf "%.1f s", b - a }'; }
echo "wheel: $(basename "$wheel"), $(du -h "$wheel" | cut -f1)"

echo "== fresh virtual environment"
python=$(readlink -f .venv/bin/python)
"$python" -m venv "$work/env"
start=$(seconds)
"$work/env/bin/pip" install --disable-pip-version-check -q "$wheel"
echo "pip install: $(took "$start"), package $(du -sh "$work"/env/lib/python3.11/site-packages/onnxtrain | cut -f1)"
mkdir "$work/demo"
start=$(seconds)
(cd "$work/demo" && env -i HOME="$work" PATH=/usr/bin:/bin "$work/env/bin/onnxtrain" demo 2>"$work/demo.log" || { cat "$work/demo.log"; exit 1; })
echo "onnxtrain demo: $(took "$start")"
env -i PATH=/usr/bin:/bin "$work/env/bin/python" - <<'END'
import subprocess, sys, time, os
program = os.path.join(os.path.dirname(sys.executable), "onnxtrain")
def best(f, n=7):
    times = []
    for _ in range(n):
        t = time.perf_counter(); f(); times.append(time.perf_counter() - t)
    return 1e3 * min(times)
print(f"onnxtrain --version: {best(lambda: subprocess.run([program, '--version'], stdout=subprocess.DEVNULL)):.0f} ms (best of 7)")
run = lambda code: subprocess.run([sys.executable, "-c", code])
print(f"import onnxtrain beyond numpy: {best(lambda: run('import numpy, onnxtrain')) - best(lambda: run('import numpy')):.0f} ms (best of 7)")
END

echo "== bare Debian root"
if [[ $(id -u) != 0 ]] || ! command -v debootstrap >/dev/null; then
  echo "skipped: needs root and debootstrap"
  exit 0
fi
mirror=$(awk '$1 == "deb" { for (k = 2; k <= NF; ++k) if ($k ~ /^[a-z]+:\/\//) { print $k; exit } } $1 == "URIs:" { print $2; exit }' \
  $(find /etc/apt -name "*.list" -o -name "*.sources") 2>/dev/null | head -1)
if ! debootstrap --variant=minbase --no-check-gpg --include=python3,python3-venv bookworm "$work/root" "$mirror" >"$work/debootstrap.log" 2>&1; then
  echo "skipped: debootstrap failed: $(tail -1 "$work/debootstrap.log")"
  exit 0
fi
mkdir "$work/root/wheels"
"$work/env/bin/pip" download --disable-pip-version-check -q -d "$work/root/wheels" numpy  # there may be no index inside
cp "$wheel" "$work/root/wheels"
mount -t proc proc "$work/root/proc"
start=$(seconds)
chroot "$work/root" sh -c 'cd /root && python3 -m venv env && env/bin/pip install -q --no-index --find-links /wheels onnxtrain && env/bin/onnxtrain demo 2>demo.log' ||
  { tail -5 "$work/root/root/demo.log" 2>/dev/null; exit 1; }
echo "venv, pip install and onnxtrain demo: $(took "$start")"
