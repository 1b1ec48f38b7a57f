#!/usr/bin/env python3
"""What is linked into the packages: a list (CycloneDX 1.5) and the licences.

    third_party.py TO --version 0.1.0      writes TO/sbom.cdx.json and TO/licences/*.txt
Versions and licence texts are those of the installed packages. Needs no package itself.
"""

import argparse
import importlib.metadata
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]

# name, licence, how it gets in, where version and licence text come from: a Debian package, a package of PyPI or
# a line of tools/libonnx.sh
COMPONENTS = [
    ("onnx", "Apache-2.0", "static", "libonnx.sh:version"),
    ("protobuf", "BSD-3-Clause", "static", "libonnx.sh:protobuf_version"),
    ("oneDNN", "Apache-2.0", "libdnnl.so.3 beside the program", "pypi:onednn-cpu-gomp"),
    ("nanobind", "BSD-3-Clause", "static, in the Python module", "pypi:nanobind"),
    ("highway", "Apache-2.0", "headers", "debian:libhwy-dev"),
    ("CLI11", "BSD-3-Clause", "headers", "debian:libcli11-dev"),
    ("nlohmann-json", "MIT", "headers", "debian:nlohmann-json3-dev"),
    ("tomlplusplus", "MIT", "headers", "debian:libtomlplusplus-dev"),
    ("zlib", "Zlib", "of the system", "debian:zlib1g"),
    ("libstdc++", "GPL-3.0-or-later WITH GCC-exception-3.1", "static", "debian:libstdc++-12-dev"),
    ("libgomp", "GPL-3.0-or-later WITH GCC-exception-3.1", "of the system; inside the wheel", "debian:libgomp1"),
]
LICENCE_OF = {"onnx": None, "protobuf": "libprotobuf-dev"}  # None: the same text as LICENSE


def debian_version(package):
    done = subprocess.run(["dpkg-query", "-W", "-f=${Version}\n", package], capture_output=True, text=True)
    return done.stdout.split("\n")[0] or "unknown"


def debian_licence(package):
    path = pathlib.Path("/usr/share/doc") / package / "copyright"
    return path.read_text(errors="replace") if path.exists() else ""


def pypi_licence(package):
    for file in importlib.metadata.files(package) or ():
        if "licen" in file.name.lower() and ".dist-info" in str(file):
            return pathlib.Path(file.locate()).read_text(errors="replace")
    return ""


def component(name, licence, how, source):
    """(entry of the list, licence text)"""
    kind, at = source.split(":")
    if kind == "debian":
        version, text = debian_version(at), debian_licence(at)
    elif kind == "pypi":
        version, text = importlib.metadata.version(at), pypi_licence(at)
    else:
        version = re.search(rf"^{at}=(\S+)", (ROOT / "tools/libonnx.sh").read_text(), re.M)[1]
        text = debian_licence(LICENCE_OF[name]) if LICENCE_OF[name] else (ROOT / "LICENSE").read_text()
    entry = {"type": "library", "name": name, "version": version, "licenses": [
        {"expression": licence} if " " in licence else {"license": {"id": licence}}],
        "properties": [{"name": "onnxtrain:linked", "value": how}]}
    return entry, text


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("to", type=pathlib.Path)
    p.add_argument("--version", required=True)
    p.add_argument("--without", action="append", default=[], metavar="NAME", help="not part of this build")
    a = p.parse_args()
    (a.to / "licences").mkdir(parents=True, exist_ok=True)
    entries = []
    for row in (c for c in COMPONENTS if c[0] not in a.without):
        entry, text = component(*row)
        entries.append(entry)
        (a.to / "licences" / f"{row[0]}.txt").write_text(text or f"{row[0]}: {row[1]}\n")
    sbom = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"component": {"type": "application", "name": "onnxtrain", "version": a.version,
                                       "licenses": [{"license": {"id": "Apache-2.0"}}]}},
            "components": entries}
    (a.to / "sbom.cdx.json").write_text(json.dumps(sbom, indent=2) + "\n")


if __name__ == "__main__":
    main()
