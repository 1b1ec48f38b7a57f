#!/usr/bin/env python3
"""clang-tidy over C++ sources; warnings are errors.

    tools/tidy.py                 every source that has a compile command (half an hour on two cores)
    tools/tidy.py --changed       those that changed since the commit in tools/lint-clean-commit.txt
    tools/tidy.py --record        everything; when it is clean, writes the present commit into that file
    tools/tidy.py FILE...

For a header that changed, one source that includes it is checked. What was found clean is remembered by the content of
the source and of all our headers below it, in ${ONNXTRAIN_CACHE:-~/.cache/onnxtrain}/tidy, and not checked again.
Needs build/lint/compile_commands.json (cmake --preset lint, which `make lint` runs).
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLEAN = ROOT / "tools" / "lint-clean-commit.txt"
COMMANDS = ROOT / "build" / "lint"
TOOL = "clang-tidy-14"
INCLUDE = re.compile(rb'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)
GCC_ONLY = re.compile(r" -Wno-(restrict|stringop-over[a-z]+|maybe-uninitialized)| -fopenmp")


def compile_commands():
    """Every source of ours with a compile command; GCC's own flags are dropped from the file that clang-tidy reads."""
    entries = json.loads((COMMANDS / "compile_commands.json").read_text())
    for e in entries:
        e["command"] = GCC_ONLY.sub("", e["command"])
    folder = COMMANDS / "tidy"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(entries))
    found = {os.path.relpath(e["file"], ROOT) for e in entries}
    return folder, sorted(f for f in found if not f.startswith(("build/", ".venv/", "../")))


@functools.cache
def below(path):
    """Our headers that a file includes, directly."""
    out = []
    for name in INCLUDE.findall((ROOT / path).read_bytes()):
        for base in (pathlib.Path(path).parent, pathlib.Path("src"), pathlib.Path("include"), pathlib.Path()):
            candidate = os.path.normpath(base / name.decode())
            if (ROOT / candidate).is_file():
                out.append(candidate)
                break
    return out


def closure(path):
    seen, todo = {path}, [path]
    while todo:
        for p in below(todo.pop()):
            if p not in seen:
                seen.add(p)
                todo.append(p)
    return seen


@functools.cache
def digest(path):
    return hashlib.sha256((ROOT / path).read_bytes()).digest()


def key(path, settings):
    h = hashlib.sha256(settings)
    for p in sorted(closure(path)):
        h.update(p.encode() + b"\0" + digest(p))
    return h.hexdigest()[:32]


def git(*args):
    return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True)


def changed(sources):
    """Sources that differ from the clean commit, one source for every header that does; None without that commit."""
    commit = "HEAD"
    if CLEAN.exists():
        commit = CLEAN.read_text().split()[0]
    else:
        print("tidy: no commit is recorded as clean (tools/lint.sh --record): only what is not committed is checked",
              flush=True)
    diff = git("diff", "--name-only", "--diff-filter=d", commit, "--", "*.cpp", "*.hpp", "*.h")
    if diff.returncode:
        print(f"tidy: commit {commit[:12]} of tools/lint-clean-commit.txt is not in this clone (shallow?): "
              "changed files cannot be told, none is checked; git fetch --unshallow", flush=True)
        return None
    new = git("ls-files", "--others", "--exclude-standard", "--", "*.cpp", "*.hpp", "*.h").stdout
    names = set((diff.stdout + new).split())
    out = {n for n in names if n in sources}
    covered = set().union(*(closure(s) for s in out)) if out else set()
    for header in sorted(names - out - covered):
        users = (s for s in sources if header in below(s))
        user = next(users, None) or next((s for s in sources if header in closure(s)), None)
        if user:
            out.add(user)
    return sorted(out)


def check(path, folder):
    done = subprocess.run([TOOL, "--quiet", "-p", str(folder), "--extra-arg=-Wno-unknown-pragmas", path], cwd=ROOT,
                          capture_output=True, text=True)
    said = [line for line in (done.stdout + done.stderr).splitlines() if not re.match(r"\d+ warnings? ", line)]
    return done.returncode == 0, "\n".join(said)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="*")
    p.add_argument("--changed", action="store_true")
    p.add_argument("--record", action="store_true")
    p.add_argument("-j", type=int, default=os.cpu_count())
    a = p.parse_args()
    start = time.time()
    folder, sources = compile_commands()
    files = a.files or (changed(sources) if a.changed else sources)
    if files is None:
        return 0
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    cache = pathlib.Path(os.environ.get("ONNXTRAIN_CACHE") or os.path.join(home, "onnxtrain"), "tidy")
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([TOOL, "--version"], capture_output=True).stdout
    settings = version + (ROOT / ".clang-tidy").read_bytes()
    keys = {f: key(f, settings) for f in files}
    todo = [f for f in files if not (cache / keys[f]).exists()]
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(a.j) as pool:
        for f, (good, said) in zip(todo, pool.map(lambda f: check(f, folder), todo)):
            if good:
                (cache / keys[f]).touch()
            else:
                bad += 1
                print(said, flush=True)
    print(f"tidy: {len(files)} files, {len(files) - len(todo)} of them remembered as clean, {bad} with findings, "
          f"{time.time() - start:.0f} s", flush=True)
    if a.record and not bad and files == sources:
        if git("status", "--porcelain", "--untracked-files=no", "--", "*.cpp", "*.hpp", "*.h").stdout:
            print("tidy: not recorded, there are changes that are not committed")
            return 1
        CLEAN.write_text(git("rev-parse", "HEAD").stdout)
        print(f"tidy: recorded {CLEAN.read_text().strip()[:12]}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
