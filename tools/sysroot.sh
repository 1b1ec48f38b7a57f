#!/usr/bin/env bash
# The libraries of another processor that our programs and tests link or open, unpacked from Debian's
# packages into a folder of the cache. Needs no root and leaves the machine's own packages alone.
# Prints the folder as the only line on stdout; progress goes to stderr.
# Usage: tools/sysroot.sh arm64
# Cache: ${ONNXTRAIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onnxtrain}/sysroot-ARCHITECTURE-KEY
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
packages=(zlib1g zlib1g-dev libgtest-dev libwebp7 libopenjp2-7)

say() { printf 'sysroot: %s\n' "$*" >&2; }
die() { printf 'sysroot: error: %s\n' "$*" >&2; exit 1; }

architecture=${1:-}
[[ $architecture =~ ^[a-z0-9]+$ ]] || die "which architecture? Usage: tools/sysroot.sh arm64"
command -v apt-get >/dev/null || die "apt-get is needed: this is not Debian or Ubuntu"
cache=${ONNXTRAIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onnxtrain}
# shellcheck source=/dev/null
key=$({ cat "$here/sysroot.sh"; . /etc/os-release; echo "$ID $VERSION_ID"; } | sha256sum | cut -c1-12)
folder=$cache/sysroot-$architecture-$key
mkdir -p "$cache"
exec 9>"$cache/.sysroot-$architecture-$key.lock"
flock 9  # two at once: the second waits
if [[ ! -e $folder/.complete ]]; then
  say "downloading Debian packages for $architecture: ${packages[*]}"
  work=$(mktemp -d "$cache/.sysroot-$architecture.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/packages" "$work/root"
  : >"$work/status"
  apt=(apt-get -q -o Dir::State="$work/state" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache"
       -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o Acquire::Languages=none)
  if [[ $(id -u) == 0 ]]; then apt+=(-o APT::Sandbox::User=root); fi
  "${apt[@]}" update >"$work/log" 2>&1 || { cat "$work/log" >&2; die "no package lists for $architecture"; }
  (cd "$work/packages" && "${apt[@]}" download "${packages[@]}" >"$work/log" 2>&1) ||
    { cat "$work/log" >&2; die "a package could not be downloaded"; }
  for file in "$work"/packages/*.deb; do dpkg-deb -x "$file" "$work/root"; done
  touch "$work/root/.complete"
  rm -rf "$folder"
  mv -T "$work/root" "$folder"
fi
echo "$folder"
