#!/usr/bin/env python3
"""clang-tidy over C++ sources; warnings are errors.

    tools/tidy.py                 every source that has a compile command
    tools/tidy.py --changed       those that differ from what tools/tidy-clean.txt records, or are not committed
    tools/tidy.py --most N        with either: at most N of them (`make test`: a few minutes, however many changed)
    tools/tidy.py --record        with either: what is clean afterwards is written into that file
    tools/tidy.py FILE...

tools/tidy-clean.txt has the digest of each source and header that was checked and found clean, or `-` where that is
still to be done. For a header that
differs, one source that includes it is checked. Many files are checked joined (tools/tidy_join.py). What was found
clean is also remembered by the content of the source and of all our headers below it, in
${ONNXTRAIN_CACHE:-~/.cache/onnxtrain}/tidy. Needs build/lint/compile_commands.json (cmake --preset lint, which
`make lint` runs).
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

import tidy_join

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLEAN = ROOT / "tools" / "tidy-clean.txt"
COMMANDS = ROOT / "build" / "lint"
FOLDER = COMMANDS / "tidy"
TOOL = "clang-tidy-14"
MOST = 24  # sources in one translation unit
INCLUDE = re.compile(rb'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)
GCC_ONLY = re.compile(r" -Wno-(restrict|stringop-over[a-z]+|maybe-uninitialized)| -fopenmp")
# The analyzer follows at most so many steps through a function: half of the time, and the same findings here.
BOUND = [f"--extra-arg={a}" for a in ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=50000")]
OPEN = "-"  # in the record: not checked yet
FAILED = re.compile(r"^([^\s:]+):\d+:\d+: (?:fatal )?error: .*\[clang-diagnostic-error\]", re.M)


def compile_commands():
    """The compile command of every source of ours, without GCC's own flags."""
    found = {}
    for e in json.loads((COMMANDS / "compile_commands.json").read_text()):
        name = os.path.relpath(e["file"], ROOT)
        if not name.startswith(("build/", ".venv/", "../")):
            found.setdefault(name, e | {"command": GCC_ONLY.sub("", e["command"])})
    return dict(sorted(found.items()))


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
    return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()[:16]


def key(path, settings):
    h = hashlib.sha256(settings)
    for p in sorted(closure(path)):
        h.update(f"{p} {digest(p)}\n".encode())
    return h.hexdigest()[:32]


def recorded(settings):
    """File to digest, of what was clean under the same settings."""
    if not CLEAN.exists():
        return {}
    first, *lines = CLEAN.read_text().splitlines()
    if first.split()[-1] != settings_digest(settings):
        print("tidy: .clang-tidy or the tool changed since tools/tidy-clean.txt was written: every file is checked",
              flush=True)
        return {}
    return {name: d for d, name in (line.split() for line in lines)}


def settings_digest(settings):
    return hashlib.sha256(settings).hexdigest()[:16]


def uncommitted():
    def git(*args):
        return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True).stdout.split()

    kinds = ("--", "*.cpp", "*.hpp", "*.h")
    return {*git("diff", "--name-only", "--diff-filter=d", "HEAD", *kinds),
            *git("ls-files", "--others", "--exclude-standard", *kinds)}


def changed(sources, clean):
    """Sources that differ from their record, have no line there or are not committed, and one source for every such
    header. Those that are not committed come first. While the record is not complete, files without a line wait like
    those whose line is open: they are counted."""
    now = uncommitted()
    unknown = OPEN if not clean or OPEN in clean.values() else ""

    def differs(f):
        return f in now or clean.get(f, unknown) not in (digest(f), OPEN)

    out = {s for s in sources if differs(s)}
    if waiting := [s for s in sources if clean.get(s, unknown) == OPEN and s not in out]:
        print(f"tidy: {len(waiting)} of {len(sources)} sources are still to be checked (tools/tidy.py --record)",
              flush=True)
    covered = set().union(*(closure(s) for s in out)) if out else set()
    headers = set().union(*(closure(s) for s in sources)) - set(sources)
    for header in sorted(h for h in headers - covered if differs(h)):
        users = [s for s in sources if header in below(s)] or [s for s in sources if header in closure(s)]
        out.add(users[0])
        covered |= closure(users[0])
    return sorted(out, key=lambda s: (s not in now, s))


def run(path, entry, name, *options):
    """clang-tidy's exit and words for a file that is compiled as `entry` says."""
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    command = entry["command"].replace(entry["file"], str(path))
    (folder / "compile_commands.json").write_text(json.dumps([entry | {"file": str(path), "command": command}]))
    done = subprocess.run([TOOL, "--quiet", "-p", str(folder), f"--config-file={ROOT / '.clang-tidy'}",
                           "--extra-arg=-Wno-unknown-pragmas", *BOUND, *options, str(path)], cwd=ROOT,
                          capture_output=True, text=True)
    said = [line for line in (done.stdout + done.stderr).splitlines() if not re.match(r"\d+ warnings? ", line)]
    return done.returncode, "\n".join(said)


def check_alone(path, entry):
    code, said = run(ROOT / path, entry, "alone-" + path.replace("/", "-"))
    return {path: "" if code == 0 else said}


def check_joined(paths, entries, name):
    """What was said of each path. Files that do not compile together are checked in halves, in the end alone."""
    if len(paths) == 1:
        return check_alone(paths[0], entries[paths[0]])
    entry, unit = entries[paths[0]], FOLDER / name / "src" / "joined.cpp"
    starts = tidy_join.write(ROOT, unit, paths)

    def said_of(*options):
        code, said = run(unit, entry, name, *options)
        return code, tidy_join.original(said, ROOT, unit, starts)

    failed = {os.path.relpath(f, ROOT) for f in FAILED.findall(said_of("--checks=-*,misc-misplaced-const")[1])}
    if failed:
        apart = [p for p in paths if p in failed]
        together = [p for p in paths if p not in failed]
        if not apart or len(apart) > 3:  # the clash may be anywhere
            apart, together = paths[:len(paths) // 2], paths[len(paths) // 2:]
        parts = [apart, together] if not together or len(apart) > 3 else [*([p] for p in apart), together]
        out = {}
        for k, part in enumerate(p for p in parts if p):
            out |= check_joined(part, entries, f"{name}-{k}")
        return out
    code, said = said_of()
    out = dict.fromkeys(paths, "")
    if code:
        named = [p for p in paths if str(ROOT / p) + ":" in said]
        out |= dict.fromkeys(named or paths, said)
    return out


def check(todo, entries, jobs):
    """What clang-tidy said of each file; empty when it is clean. Few files are checked one by one."""
    join = [f for f in todo if len(todo) > 4 and tidy_join.joinable(ROOT / f)]
    flags = {f: tidy_join.flags_of(entries[f]) for f in join}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(check_joined, g, entries, f"group-{i}")
                   for i, g in enumerate(tidy_join.groups(join, flags, MOST))]
        waiting += [pool.submit(check_alone, f, entries[f]) for f in todo if f not in join]
        for done in concurrent.futures.as_completed(waiting):
            yield done.result()


def record(settings, sources, before, clean, bad):
    """Every file that is clean, sorted by name. Others keep the line that they had; in a first record they are open."""
    files = sorted(set().union(*(closure(s) for s in sources)))
    done = {f for f in files if f in clean and f not in bad}
    now = {f: digest(f) if f in done else before.get(f, OPEN) for f in files if f in done or f in before or not before}
    lines = [f"{d} {f}\n" for f, d in now.items()]
    head = f"# Files that clang-tidy found clean (tools/tidy.py --record); settings {settings_digest(settings)}\n"
    CLEAN.write_text(head + "".join(lines))
    print(f"tidy: recorded {len(done)} of {len(files)} files as clean in {CLEAN.name}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="*")
    p.add_argument("--changed", action="store_true")
    p.add_argument("--record", action="store_true")
    p.add_argument("--most", type=int, default=sys.maxsize)
    p.add_argument("-j", type=int, default=os.cpu_count())
    a = p.parse_args()
    start = time.time()
    entries = compile_commands()
    sources = list(entries)
    version = subprocess.run([TOOL, "--version"], capture_output=True).stdout
    checks = (ROOT / ".clang-tidy").read_bytes()
    settings = version + checks  # of the machine's memory
    lasting = version.splitlines()[0] + checks  # of the record: without the name of this CPU
    was_clean = recorded(lasting)
    files = a.files or (changed(sources, was_clean) if a.changed else sources)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    cache = pathlib.Path(os.environ.get("ONNXTRAIN_CACHE") or os.path.join(home, "onnxtrain"), "tidy")
    cache.mkdir(parents=True, exist_ok=True)
    keys = {f: key(f, settings) for f in files}
    todo = [f for f in files if not (cache / keys[f]).exists()]
    if left := todo[a.most:]:
        print(f"tidy: {len(left)} of {len(todo)} files that differ from tools/tidy-clean.txt are left out here "
              "(tools/tidy.py --changed --record checks them all)", flush=True)
        todo = todo[:a.most]
        files = [f for f in files if f not in set(left)]
    bad, told = set(), set()
    for result in check(todo, entries, a.j):
        for path, said in result.items():
            if not said:
                (cache / keys[path]).touch()
                continue
            bad.add(path)
            if said not in told:
                print(said, flush=True)
                told.add(said)
    print(f"tidy: {len(files)} of {len(sources)} files, {len(files) - len(todo)} of them remembered as clean, "
          f"{len(bad)} with findings, {time.time() - start:.0f} s", flush=True)
    if a.record:
        checked = set().union(*(closure(f) for f in files)) if files else set()
        clean = {f for f, d in was_clean.items() if (ROOT / f).is_file() and d == digest(f)} | checked
        record(lasting, sources, was_clean, clean, bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
