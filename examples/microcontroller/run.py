"""Builds the training in C and runs it: python run.py [mlp|cnn] [--on host|cortex-m3|cortex-m4f|aarch64|riscv64]

What is not installed is said and left out. Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm
gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user."""

import argparse
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import make

HERE = Path(__file__).resolve().parent
BARE = ["-mthumb", "-nostartfiles", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections",
        "--specs=nosys.specs", f"-T{HERE / 'cortex_m.ld'}"]
QEMU = ["-nographic", "-semihosting-config", "enable=on,target=native", "-kernel"]
MACHINES = {  # compiler and flags, how to run, what `size` is called
    "host": (["gcc"], [], "size"),
    "cortex-m3": (["arm-none-eabi-gcc", "-mcpu=cortex-m3", *BARE], ["qemu-system-arm", "-M", "mps2-an385", *QEMU],
                  "arm-none-eabi-size"),
    "cortex-m4f": (["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", *BARE],
                   ["qemu-system-arm", "-M", "mps2-an386", *QEMU], "arm-none-eabi-size"),
    "aarch64": (["aarch64-linux-gnu-gcc", "-static"], ["qemu-aarch64"], "aarch64-linux-gnu-size"),
    "riscv64": (["riscv64-linux-gnu-gcc", "-static"], ["qemu-riscv64"], "riscv64-linux-gnu-size"),
}


def build_and_run(folder, machine):
    """(losses, code bytes, bytes of data and bss, bytes of stack)"""
    compiler, runner, size = MACHINES[machine]
    program = folder / f"train-{machine}"
    board = "board_cortex_m.c" if machine.startswith("cortex") else "board_hosted.c"
    subprocess.run([*compiler, "-O2", "-std=gnu11", "-ffp-contract=off", f"-I{HERE}", f"-I{folder}", HERE / "main.c",
                    HERE / board, folder / "step.c", "-lm", "-o", program], check=True)
    done = subprocess.run([*runner, program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    losses, stack = [], 0
    for line in done.stdout.splitlines():
        words = line.split()
        if words[:1] == ["step"]:
            losses.append(struct.unpack(">f", bytes.fromhex(words[-1]))[0])
        if words[:1] == ["stack"]:
            stack = int(words[1])
    text, data, bss = map(int, subprocess.run([size, program], capture_output=True, text=True,
                                              check=True).stdout.splitlines()[1].split()[:3])
    return losses, text + data, data + bss, stack


def missing(machine):
    compiler, runner, size = MACHINES[machine]
    return [p for p in (compiler[0], *runner[:1], size) if not shutil.which(p)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("networks", nargs="*", default=list(make.NETWORKS))
    p.add_argument("--on", nargs="*", default=list(MACHINES), choices=list(MACHINES))
    p.add_argument("--out", help="folder for the generated files (default: a temporary one)")
    a = p.parse_args()
    out = Path(a.out or tempfile.mkdtemp())
    worst = 0.0
    print("| network | runs on | loss, first and last | farthest from onnxtrain | code | RAM: static | RAM: stack |")
    print("|---|---|---|---|---|---|---|")
    notes = []
    for name in a.networks:
        subprocess.run([sys.executable, HERE / "make.py", name, out / name], check=True, stdout=subprocess.DEVNULL)
        wanted = [float(v) for v in (out / name / "losses.txt").read_text().split()]
        for machine in a.on:
            if missing(machine):
                notes.append(f"{name} on {machine}: left out, there is no {', '.join(missing(machine))}")
                continue
            losses, code, data, stack = build_and_run(out / name, machine)
            if len(losses) != len(wanted):
                notes.append(f"{name} on {machine}: it made {len(losses)} of {len(wanted)} steps")
                worst = float("inf")
                continue
            far = max(abs(g - w) for g, w in zip(losses, wanted))
            worst = max(worst, far)
            bare = machine.startswith("cortex")
            sizes = f"{code} B | {data} B | {stack} B" if bare else "| | "
            print(f"| {name} | {machine} | {losses[0]:.4f}, {losses[-1]:.4f} | {far:.1e} | {sizes} |", flush=True)
    print("\n".join(notes))
    return 0 if worst < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
