#!/usr/bin/env bash
# Trains the MNIST sample twice and looks at report, comparison and board in three widths and both schemes.
# Screenshots go to out/page; the ones that the documents show are copied to docs/images.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v chromium >/dev/null || { echo "no chromium on this machine (Debian: apt-get install chromium)"; exit 1; }
mkdir -p docs/images
python=$(tools/environment.sh browser)/bin/python
here=$PWD
work=$(mktemp -d)
board=
trap '[[ -z $board ]] || kill "$board"; rm -rf "$work"' EXIT
cd "$work"
onnxtrain=$here/build/release/onnxtrain
"$here/.venv/bin/python" "$here/tools/package/mnist_subset.py" "$here/examples/mnist/data" data
for batch in 32 128; do
  "$onnxtrain" train "$here/examples/mnist/mlp.train.onnx" --data data --epochs 10 --batch "$batch" -q
done
cp runs/*-001/report.html report.html
"$onnxtrain" report runs/*-001 runs/*-002 -o comparison.html >/dev/null
"$onnxtrain" board >address 2>/dev/null &
board=$!
for _ in $(seq 50); do [[ -s address ]] && break; sleep 0.2; done
"$python" "$here/tests/page/browser.py" report.html comparison.html "$(cat address)" --shots "$here/out/page" |
  "$here/.venv/bin/python" -c '
import json, sys
bad = 0
for line in sys.stdin:
    p = json.loads(line)
    parts = {k: len(p[k]) for k in ("console", "outside", "serious", "wide")}
    bad += sum(parts.values())
    print(p["page"].ljust(12), "  ".join(f"{k} {n}" for k, n in parts.items()), "  curves", p["charts"], "  images", p["images"])
    for k in parts:
        for text in p[k]: print("   ", k, text)
print("pages were looked at in widths 360, 800, 1440 px, light and dark")
sys.exit(bad > 0)'
ls -l report.html comparison.html | awk '{print $9, $5 " bytes"}'
for name in report-{360,800,1440}-{light,dark} comparison-1440-light board-800-dark; do
  cp "$here/out/page/$name-top.png" "$here/docs/images/$name.png"
done
