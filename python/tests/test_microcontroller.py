"""examples/microcontroller: a step as C trains like the library, on this machine and in QEMU."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "microcontroller"


@pytest.fixture(scope="module")
def generator():
    if not shutil.which("gcc"):
        pytest.skip("there is no gcc")
    made = subprocess.run([str(ROOT / "tools/environment.sh"), "engines"], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"emx-onnx-cgen is not there: {made.stderr.strip().splitlines()[-1]}")
    return made.stdout.strip() + "/bin/emx-onnx-cgen"


def test_an_mlp_trains_in_c(generator, tmp_path):
    bare = shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")
    machines = ["host", "cortex-m3"] if bare else ["host"]
    done = subprocess.run([sys.executable, str(EXAMPLE / "run.py"), "mlp", "--on", *machines, "--out", str(tmp_path)],
                          capture_output=True, text=True, env={**os.environ, "EMX_ONNX_CGEN": generator})
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split("|") for line in done.stdout.splitlines() if line.startswith("| mlp")]
    assert [r[2].strip() for r in rows] == machines
    first, last = (float(v) for v in rows[0][3].split(","))
    assert last < first / 2 and all(float(r[4]) < 1e-4 for r in rows)
    for r in rows[1:]:
        assert int(r[6].split()[0]) + int(r[7].split()[0]) < 16 * 1024  # RAM


def test_temporaries_share_memory_only_when_they_do_not_live_together():
    spec = importlib.util.spec_from_file_location("memory", EXAMPLE / "memory.py")
    memory = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(memory)
    source = """void step(const float x[restrict 4], float y[restrict 4]) {
    float tmp0_a[4];
    float tmp1_b[2][2];
    bool tmp2_c[3];
    float tmp3_d[4];
    n0(x, tmp0_a);
    n1(tmp0_a, tmp1_b);
    n2(tmp1_b, tmp2_c);
    n3(tmp1_b, tmp2_c, tmp3_d);
    n4(tmp3_d, y);
}
"""
    made, block, apart = memory.shared(source)
    assert apart == 16 * 3 + 8 and block == 16 + 16 + 8
    assert "float (*const tmp1_b)[2] = (void*)(block + " in made and "n3(tmp1_b, tmp2_c, tmp3_d);" in made
    lives = {"a": (0, 1), "b": (1, 3), "c": (2, 3), "d": (3, 4)}
    at = memory.place(lives, {"a": 16, "b": 16, "c": 8, "d": 16})
    for one in lives:
        for other in lives:
            together = lives[one][0] <= lives[other][1] and lives[other][0] <= lives[one][1]
            size = {"a": 16, "b": 16, "c": 8, "d": 16}
            apart = at[one] + size[one] <= at[other] or at[other] + size[other] <= at[one]
            assert one == other or apart or not together
