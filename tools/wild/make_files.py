"""Makes ONNX files with other projects' exporters and tools, into the cache of tools/wild, for report.py --made.

Usage: PYTHON tools/wild/make_files.py [--only TEXT]      PYTHON: of tools/environment.sh wild

Networks have random weights. What an exporter or tool refuses is printed and left out.
"""

import argparse
import hashlib
import importlib
import json
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from collect import cache_folder  # noqa: E402

SOURCES = ("by_hand", "of_sklearn", "of_torch", "of_tools")


def write(model, folder):
    import onnx

    data = model if isinstance(model, bytes) else model.SerializeToString()
    onnx.load_from_string(data)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(data)
    return len(data), hashlib.sha256(data).hexdigest()[:16]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="files whose name holds this text")
    parser.add_argument("--sources", default="", help=f"of {SOURCES}, with commas between")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kept = cache_folder() / "made.json"
    index = json.loads(kept.read_text()) if kept.exists() else {}
    for source in SOURCES if not options.sources else options.sources.split(","):
        for name, make in importlib.import_module(f"made.{source}").files():
            if options.only not in name or name in index:
                continue
            try:
                size, digest = write(make(), cache_folder() / "files" / name)
            except Exception as e:  # the exporter's own limits
                print(f"{name}: not made: {type(e).__name__}: {str(e).strip()[:160]}", flush=True)
                continue
            index[name] = {"package": "made", "path": name, "bytes": size, "sha256": digest}
            kept.write_text(json.dumps(index, indent=1))
    print(f"{len(index)} files")


if __name__ == "__main__":
    main()
