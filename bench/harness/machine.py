"""What a table must say about its run: commit, processor, instruction sets; and how busy the machine was."""

import os
import platform
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TICK = os.sysconf("SC_CLK_TCK")
SETS = ("avx512_bf16", "avx512_vnni", "avx512f", "avx2", "fma", "sve", "asimd")


def commit_of(folder=ROOT):
    """Short hash; with a note when files differ from it."""
    def git(*arguments):
        return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True)

    head = git("rev-parse", "--short=12", "HEAD")
    if head.returncode:
        return "no git checkout"
    changed = git("status", "--porcelain", "--untracked-files=no").stdout.strip()
    return head.stdout.strip() + (" with local changes" if changed else "")


def processor():
    model, flags = platform.machine(), []
    with open("/proc/cpuinfo") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                model = value.strip()
            elif key.strip() in ("flags", "Features"):
                flags = value.split()
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)), "isa": [s for s in SETS if s in flags],
            "isa_limit": os.environ.get("ONNXTRAIN_ISA", ""), "virtual": "hypervisor" in flags}


def describe():
    return {"commit": commit_of(), "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), **processor(),
            "kernel": platform.release(), "python": platform.python_version(), "load": os.getloadavg()[0]}


def busy_seconds():
    """CPU time of all processes since the start, and time that the hypervisor gave to others."""
    with open("/proc/stat") as file:
        v = [int(n) / TICK for n in file.readline().split()[1:]]
    return v[0] + v[1] + v[2] + v[5] + v[6], v[7]


def others_during(work, own_cpu):
    """-> (result of work(), CPUs used meanwhile by anybody else); own_cpu() gives the CPU time of who works."""
    (busy, stolen), own, begin = busy_seconds(), own_cpu(), time.monotonic()
    result = work()
    spent = time.monotonic() - begin
    (busy_now, stolen_now), own_now = busy_seconds(), own_cpu()
    foreign = max(0.0, busy_now - busy - (own_now - own))
    return result, (foreign + stolen_now - stolen) / spent
