"""Without PyTorch the package still imports, and what needs it says so."""

import subprocess
import sys

CODE = """
import sys
for name in ("torch", "onnx"):
    sys.modules[name] = None  # as if it were not installed
import onnxtrain as ot
for call in (ot.to_torch, ot.torch_state_dict):
    try:
        call(b"")
    except ot.UsageError as e:
        assert e.code == "OT1733" and "onnxtrain[torch]" in e.hint, e
    else:
        raise SystemExit("no error")
"""


def test_says_what_to_install():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
