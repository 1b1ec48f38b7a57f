#!/usr/bin/env python3
"""Checks who includes whom in src/ against docs/layers.txt.

Reports forbidden includes, includes of headers that are not there, permissions that nobody uses,
and cycles between folders, on the first level (src/ops) and on the second (src/ops/math): counted
over the includes that really exist, so a cycle in layers.txt itself is found too.
Exit 1 with a list when there are any. Usage: tools/check_layers.py [ROOT]
"""

import fnmatch
import pathlib
import re
import sys

from problems import report

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.M)
SOURCES = {".cpp", ".hpp", ".h", ".inc"}


def read_rules(path):
    """layers.txt -> ({folder: allowed folders}, [(header prefix, patterns of paths)])."""
    layers, headers = {}, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        left, colon, right = line.partition(":")
        if not colon:
            sys.exit(f"{path.name}:{number}: expected 'folder: folders'")
        if left.startswith("header "):
            headers.append((left.removeprefix("header ").strip(), right.split()))
        else:
            layers[left.strip()] = set(right.split())
    for folder, allowed in layers.items():
        for name in sorted(allowed - layers.keys()):
            sys.exit(f"{path.name}: '{folder}' may include '{name}', which has no line of its own")
    return layers, headers


def may_include(path, patterns):
    """Is a file below src/ one of these: a folder, or a pattern such as kernels/*_onednn.*"""
    return any(path.startswith(p + "/") or fnmatch.fnmatchcase(path, p) for p in patterns)


def find_cycle(edges):
    """A list of folders that leads back to its first one, or None."""
    done, path = set(), []

    def visit(folder):
        if folder in path:
            return path[path.index(folder):] + [folder]
        if folder in done:
            return None
        path.append(folder)
        for other in sorted(edges.get(folder, ())):
            if cycle := visit(other):
                return cycle
        path.pop()
        done.add(folder)
        return None

    return next((c for f in sorted(edges) if (c := visit(f))), None)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    src = root / "src"
    layers, headers = read_rules(root / "docs" / "layers.txt")
    problems, edges, inner_edges, files, includes = [], {}, {}, 0, 0

    for path in sorted(p for p in src.rglob("*") if p.suffix in SOURCES):
        if path.stem.endswith("_test"):
            continue
        files += 1
        here = path.relative_to(src).as_posix()
        folder = here.split("/")[0]
        if folder not in layers:
            problems.append(f"src/{here}: folder '{folder}' has no line in docs/layers.txt")
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for match in INCLUDE.finditer(text):
            includes += 1
            quote, target = match.groups()
            where = f"src/{here}:{text.count(chr(10), 0, match.start(2)) + 1}"
            if (src / target).is_file():
                other = target.split("/")[0]
                inner, other_inner = (p.rpartition("/")[0] for p in (here, target))
                if other == folder and inner != other_inner:
                    inner_edges.setdefault(inner, set()).add(other_inner)
                if other != folder:
                    edges.setdefault(folder, set()).add(other)
                    if other not in layers[folder]:
                        problems.append(f"{where}: '{folder}' may not include '{target}'")
                continue
            for prefix, allowed in headers:
                if target.startswith(prefix) and not may_include(here, allowed):
                    problems.append(f"{where}: <{target}> belongs to {' '.join(allowed)} only")
            if quote == '"' and target.split("/")[0] in layers and target.endswith(".hpp"):
                problems.append(f"{where}: there is no header '{target}'")

    for folder, allowed in layers.items():
        for other in sorted(allowed - edges.get(folder, set())):
            problems.append(f"docs/layers.txt: '{folder}' may include '{other}', and no file does")
    for what, graph in (("includes", edges), ("includes", inner_edges), ("docs/layers.txt", layers)):
        if cycle := find_cycle(graph):
            problems.append(f"cycle in {what}: {' -> '.join(cycle)}")

    return report(problems, f"layers: {files} files, {includes} includes")


if __name__ == "__main__":
    sys.exit(main())
