"""One architecture as a portable step in every runtime; `make figures-engines` does it for all of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("onnxruntime")
import figures  # noqa: E402


@pytest.fixture(scope="module")
def python():
    made = subprocess.run([str(figures.ROOT / "tools/environment.sh"), "engines"], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(made.stderr.strip().splitlines()[-1])
    return made.stdout.strip() + "/bin/python"


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    folder = tmp_path_factory.mktemp("step")
    wanted, nodes = figures.write("mlp", "dynamo", True, folder, "portable")
    assert nodes[0][1] < 100
    return folder, wanted


@pytest.mark.parametrize("runtime", ["reference", "ort_off", "openvino", "iree", "tinygrad", "tract", "emx"])
def test_a_step_elsewhere(python, step, runtime):
    folder, wanted = step
    got, why, _ = figures.one(python, "mlp", runtime, folder, wanted)
    assert got == "right", why


def test_validation_and_resuming_in_every_engine(python):
    """The tests of the engines again, where OpenVINO is."""
    done = subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "openvino or goes_on",
                           str(figures.ROOT / "python/tests/test_engine_evaluation.py")],
                          capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(figures.ROOT / "python")})
    assert done.returncode == 0 and "skipped" not in done.stdout, done.stdout


def _conformance(python, engine, only):
    done = subprocess.run([python, "-m", "onnxtrain.conformance", "run", "--engine", engine, "--only", only],
                          capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(figures.ROOT / "python")})
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("engine", ["openvino", "tinygrad"])
def test_states_that_change_places(python, engine):
    """New values of state that are old values of others: no engine gives the same buffer twice."""
    code, said = _conformance(python, engine, "bindings*")
    assert code == 0 and "3 of 3 pass" in said, said


@pytest.mark.parametrize("engine", ["iree", "tinygrad"])
def test_sizes_that_change_from_step_to_step(python, engine):
    """tinygrad's reader keeps the sizes of the first call, IREE wants names for open ones: steps of one size each."""
    code, said = _conformance(python, engine, "shape_*")
    assert code == 0 and "4 of 4 pass" in said, said


def test_only_elements_without_a_gradient_are_beyond_the_limit():
    import zero_gradients

    rows, rest = zero_gradients.measure("mixer")
    assert rows and rest <= figures.LIMIT
    assert all(ratio < 1e-12 for *_, ratio in rows)
