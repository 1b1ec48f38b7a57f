#!/usr/bin/env bash
# Brings a Debian or Ubuntu machine and .venv/ to what the build needs.
# Usage: tools/setup.sh build|test|lint|fuzz|arm ...     (build is always included)
# test: also PyTorch and scikit-learn for .venv/, and .venv-tf/ with TensorFlow and Keras, both from environments
#       that all checkouts share (tools/environment.sh). Where they cannot be had, a line says so and the tests that
#       need them are skipped; the line is kept in .venv/.missing-torch and .venv/.missing-tensorflow.
# Does nothing, quickly, when all is there already.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

want_test=0 want_lint=0
packages=(ccache libprotobuf-dev protobuf-compiler libgtest-dev libbenchmark-dev libcli11-dev
          nlohmann-json3-dev libtomlplusplus-dev libhwy-dev zlib1g-dev pkg-config
          libwebp-dev libopenjp2-7-dev)
for part in "$@"; do
  case $part in
    build) ;;
    test) want_test=1 ;;
    lint) want_lint=1; packages+=(clang-format-14 clang-tidy-14) ;;
    fuzz) packages+=(clang-14 libclang-rt-14-dev) ;;
    arm) packages+=(g++-aarch64-linux-gnu qemu-user-static) ;;
    *) die "unknown part '$part' (known: build test lint fuzz arm)" ;;
  esac
done

find_python() {
  local p
  for p in "${PYTHON:-}" python3.11 python3; do
    if [[ -n $p ]] && "$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$p"
      return
    fi
  done
}

# --- Debian packages ---------------------------------------------------------------------------
python=""
if [[ ! -x .venv/bin/python ]]; then
  python=$(find_python)
  [[ -n $python ]] || die "no Python 3.11 or newer found (set PYTHON=/path/to/python)"
  major_minor=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  "$python" -c 'import ensurepip, venv' 2>/dev/null || packages+=("python$major_minor-venv")
  "$python" -c 'import os, sysconfig as s; os.stat(s.get_path("include") + "/Python.h")' 2>/dev/null ||
    packages+=("python$major_minor-dev")
fi
for tool in cmake git; do
  command -v $tool >/dev/null || packages+=("$tool")
done
command -v ninja >/dev/null || packages+=(ninja-build)
command -v c++ >/dev/null || packages+=(g++)

missing=()
if command -v dpkg-query >/dev/null; then
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
  for p in "${packages[@]}"; do
    grep -qx "installed $p" <<<"$installed" || missing+=("$p")
  done
elif [[ ! -e /usr/include/hwy/highway.h ]]; then
  die "this is not Debian or Ubuntu; install by hand what these packages hold: ${packages[*]}"
fi
if ((${#missing[@]})); then
  as_root=()
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null ||
      die "packages are missing and there is neither root nor sudo; as root run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing Debian packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -q >&2 || say "apt-get update failed; trying with the lists that are here"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    "${missing[@]}" >&2 || die "apt-get install failed for: ${missing[*]}"
fi

# --- Open MPI for the tests of several processes: where it cannot be had they are skipped ---------
if ((want_test)) && ! command -v mpicc >/dev/null && command -v apt-get >/dev/null; then
  as_root=()
  if [[ $(id -u) != 0 ]]; then as_root=(sudo -n); fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends openmpi-bin libopenmpi-dev \
    >/dev/null 2>&1 || say "Open MPI cannot be installed: the tests of several processes are skipped"
fi

# --- virtual environment -----------------------------------------------------------------------
# An interpreter that went away (an upgraded system Python) leaves a dead .venv: make it anew.
if [[ -e .venv ]] && ! .venv/bin/python -c '' 2>/dev/null; then
  say ".venv is incomplete, making it again"
  rm -rf .venv
fi
if [[ ! -x .venv/bin/python ]]; then
  python=${python:-$(find_python)}
  say "making .venv with $("$python" --version)"
  "$python" -m venv .venv
fi

pip_install() {  # name of the requirements file; the stamp holds what was installed last
  local file=tools/requirements-$1.txt stamp=.venv/.stamp-$1
  if ! cmp -s "$file" "$stamp"; then
    say "installing Python packages of $file"
    .venv/bin/python -m pip install --disable-pip-version-check -q --progress-bar off -r "$file" >&2 ||
      die "pip could not install $file (is there a network or a package index?)"
    cp "$file" "$stamp"
  fi
}
pip_install build
if ((want_lint)); then pip_install lint; fi
if ((want_test)); then pip_install test; fi

# --- the checkout inside .venv: import onnxtrain, .venv/bin/onnxtrain ----------------------------
site=$(echo .venv/lib/python3.*/site-packages)
if [[ $(cat "$site/onnxtrain-checkout.pth" 2>/dev/null) != "$PWD/python" ]]; then
  echo "$PWD/python" >"$site/onnxtrain-checkout.pth"
fi
if [[ $(readlink .venv/bin/onnxtrain 2>/dev/null) != ../../build/release/onnxtrain ]]; then
  ln -sfn ../../build/release/onnxtrain .venv/bin/onnxtrain
fi

# --- PyTorch for .venv/, TensorFlow in .venv-tf/ --------------------------------------------------
# shared_environment NAME SITE_PACKAGES: what tools/environment.sh made joins the packages of that folder.
shared_environment() {
  local name=$1 link=$2/onnxtrain-$1.pth missing=.venv/.missing-$1 folder
  if folder=$(tools/environment.sh "$name" 2> >(tee "$missing" >&2)); then
    rm -f "$missing"
    folder=$(echo "$folder"/lib/python3.*/site-packages)
    echo "import site; site.addsitedir('$folder')" >"$link"
  else
    rm -f "$link"
  fi
}
if ((want_test)); then
  shared_environment torch "$site"
  if [[ ! -e .venv/.missing-torch ]]; then pip_install sklearn; fi
  if [[ ! -x .venv-tf/bin/python ]] || ! .venv-tf/bin/python -c '' 2>/dev/null; then
    rm -rf .venv-tf
    .venv/bin/python -m venv --without-pip .venv-tf
  fi
  site_tf=$(echo .venv-tf/lib/python3.*/site-packages)
  echo "$PWD/python" >"$site_tf/onnxtrain-checkout.pth"
  shared_environment tensorflow "$site_tf"
fi
