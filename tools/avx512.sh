#!/usr/bin/env bash
# Runs this build on an emulated CPU with AVX-512, for machines that have none: a Linux of a few
# files in the emulator Bochs, some sixty times slower than the machine, so choose what to run.
#   tools/avx512.sh tests [FILTER]      the C++ tests (a GoogleTest filter), one process
#   tools/avx512.sh trajectories        tests/trajectories: 93 exported files against PyTorch's numbers
#   tools/avx512.sh run 'COMMANDS'      a shell line; the folder has onnxtrain, onnxtrain_tests,
#                                       examples, tests/trajectories and python3 with numpy
# ONNXTRAIN_EMULATED_CPU: a model of `bochs --help cpu`; corei7_skylake_x unless told.
# Needs a Debian with apt; nothing is installed: packages are unpacked and the emulator is compiled
# (five minutes, once) in ${ONNXTRAIN_CACHE:-~/.cache/onnxtrain}/emulator. See docs/decisions/0044.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${ONNXTRAIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onnxtrain}/emulator
cpu=${ONNXTRAIN_EMULATED_CPU:-corei7_skylake_x}
libraries=/lib/x86_64-linux-gnu
say() { printf 'avx512: %s\n' "$*" >&2; }

case ${1:-} in
  tests) commands="./onnxtrain_tests --gtest_color=no --gtest_filter='${2:-*}'" ;;
  trajectories) commands='ONNXTRAIN_THREADS=2 python3 tests/trajectories/compare.py' ;;
  run) commands=${2:?a shell line} ;;
  *) sed -n '2,10s/^# \?//p' "$0"; exit 2 ;;
esac

# Packages of this Debian, unpacked, and Bochs from the source package of a suite that has 3.0.
# Debian's own binary has the debugger compiled in and is several times slower.
fetch() {
  mkdir -p "$cache"/{packages,lists/partial,archives/partial}
  local kernel
  kernel=$(apt-cache search --names-only '^linux-image-[0-9.-]+-cloud-amd64-unsigned$' | cut -d' ' -f1 | sort -V | tail -1)
  (cd "$cache/packages" && apt-get download -q "$kernel" busybox-static isolinux syslinux-common \
    xorriso libisoburn1 libisofs6 libburn4 libjte2 bochsbios vgabios)
  for p in "$cache"/packages/*.deb; do dpkg -x "$p" "$cache/root"; done
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" \
    >"$cache/sources.list"
  local apt=(-q -o "Dir::Etc::sourcelist=$cache/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$cache/lists" -o "Dir::Cache::archives=$cache/archives")
  apt-get "${apt[@]}" update
  # without dpkg-source: the patches are about packaging
  (cd "$cache" && apt-get "${apt[@]}" source --download-only bochs || ls bochs_*.orig.tar.*)
  mkdir -p "$cache/bochs"
  tar xf "$cache"/bochs_*.orig.tar.* -C "$cache/bochs" --strip-components=1
  cd "$cache/bochs"
  ./configure --enable-cpu-level=6 --enable-x86-64 --enable-avx --enable-evex --enable-all-optimizations \
    --enable-repeat-speedups --enable-fast-function-calls --enable-handlers-chaining --enable-pci \
    --disable-debugger --disable-gdb-stub --disable-plugins --disable-docbook --with-nogui \
    CXXFLAGS="-O2 -march=native" CFLAGS="-O2 -march=native" >configure.out
  make -j"$(nproc)" >make.out 2>&1
  touch "$cache/.complete"
}
if [[ ! -e $cache/.complete ]]; then
  say "making the emulator in $cache"
  (fetch >"$cache.log" 2>&1) || { tail -20 "$cache.log" >&2; exit 1; }
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
guest=$work/guest
mkdir -p "$guest"/{bin,lib64,"$libraries",proc,sys,dev,tmp,w/tests} "$work/iso/isolinux"

# Programs and every library that they and Python's modules ask for.
copy_libraries() {
  local found
  found=$(ldd "$@" 2>/dev/null | sed -nE 's/.*=> (\/[^ ]+) .*/\1/p' | sort -u)
  for l in $found; do
    [[ -e $guest/$libraries/$(basename "$l") ]] || strip -o "$guest/$libraries/$(basename "$l")" "$(readlink -f "$l")"
  done
}
cp "$cache/root/bin/busybox" "$guest/bin/"
for tool in $("$cache/root/bin/busybox" --list | grep -vx busybox); do ln -sf busybox "$guest/bin/$tool"; done
for program in onnxtrain onnxtrain_tests; do
  strip -o "$guest/w/$program" "build/release/$program"
  copy_libraries "build/release/$program"
done
cp -L /lib64/ld-linux-x86-64.so.2 "$guest/lib64/"
cp -r examples "$guest/w/"
if [[ $commands == *python3* ]]; then
  python=$(.venv/bin/python -c 'import sys; print(sys.base_prefix)')
  version=$(.venv/bin/python -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
  packages=$guest/py/lib/$version/site-packages
  mkdir -p "$packages"
  tar cf - -C "$python/lib/$version" --exclude=test --exclude=site-packages --exclude=dist-packages --exclude=tkinter \
    --exclude='config-*' --exclude=ensurepip --exclude=idlelib . | tar xf - -C "$guest/py/lib/$version"
  cp "$(readlink -f .venv/bin/python)" "$guest/bin/python3"
  tar cf - -C ".venv/lib/$version/site-packages" --exclude=tests numpy numpy.libs | tar xf - -C "$packages"
  cp -r python/onnxtrain "$packages/"
  strip "$packages"/onnxtrain/_native*.so
  cp -r tests/trajectories "$guest/w/tests/"
  copy_libraries "$guest/bin/python3" python/onnxtrain/_native*.so
  for module in zlib _bz2 _lzma _ctypes _hashlib; do
    copy_libraries "$guest/py/lib/$version/lib-dynload/$module".*.so || true
  done
fi

cat >"$guest/init" <<INIT
#!/bin/sh
export PATH=/bin HOME=/tmp LD_LIBRARY_PATH=$libraries PYTHONHOME=/py PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
cd /w
./onnxtrain doctor
sh /commands
echo "guest: exit \$?"
poweroff -f
INIT
chmod +x "$guest/init"
printf '%s\n' "$commands" >"$guest/commands"
(cd "$guest" && find . | "$cache/root/bin/busybox" cpio -o -H newc 2>/dev/null) >"$work/iso/initrd"
rm -rf "$guest"
cp "$cache"/root/boot/vmlinuz-* "$work/iso/vmlinuz"
cp "$cache/root/usr/lib/ISOLINUX/isolinux.bin" "$cache/root/usr/lib/syslinux/modules/bios/ldlinux.c32" "$work/iso/isolinux/"
cat >"$work/iso/isolinux/isolinux.cfg" <<'MENU'
DEFAULT linux
LABEL linux
 KERNEL /vmlinuz
 INITRD /initrd
 APPEND console=ttyS0,115200 quiet mitigations=off nokaslr nosmp nowatchdog random.trust_cpu=on panic=-1
MENU
LD_LIBRARY_PATH=$cache/root/usr/lib/x86_64-linux-gnu "$cache/root/usr/bin/xorriso" -as mkisofs -quiet -o "$work/disk.iso" \
  -b isolinux/isolinux.bin -c isolinux/boot.cat -no-emul-boot -boot-load-size 4 -boot-info-table "$work/iso" 2>"$work/xorriso.log"
rm -rf "$work/iso"
cat >"$work/bochsrc" <<RC
memory: guest=1536, host=1536
cpu: model=$cpu, count=1, ips=100000000, reset_on_triple_fault=0, ignore_bad_msrs=1
romimage: file=$cache/root/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=$cache/root/usr/share/bochs/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path=$work/disk.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$work/console
log: $work/bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
debug: action=ignore
display_library: nogui
clock: sync=none
RC
: >"$work/console"
"$cache/bochs/bochs" -q -f "$work/bochsrc" </dev/null >"$work/out" 2>&1 &
bochs=$!
tail -f --pid=$bochs -n +1 "$work/console"
wait $bochs || true
grep -q 'guest: exit 0' "$work/console"
