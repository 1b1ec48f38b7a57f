"""The conformance suite for ONNX Training: this library passes it, ONNX Runtime too, broken engines do not, and its
expected values are right."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import broken_engines  # noqa: E402
import onnxtrain as ot  # noqa: E402
from onnxtrain import conformance  # noqa: E402
from onnxtrain.conformance import arithmetic as A  # noqa: E402
from onnxtrain.conformance import score, targets  # noqa: E402
from onnxtrain.conformance.case import read, write  # noqa: E402

NO_PORTABLE_STEP = {
    "sections_in_turn",
    "type_double",
    "type_float16",
    "type_bfloat16",
    "shape_unknown_rank",
    "if_update",
    "graph_call",
}


@pytest.fixture(scope="module")
def cases():
    return conformance.all_cases()


def failing(result):
    return {r.name: r.why for r in result.results if r.verdict in ("wrong", "refused")}


def test_this_library_passes_every_case(cases):
    got = score.run(cases, targets.Native())
    assert not failing(got) and got.count("pass") == len(cases) >= 200, failing(got)


def test_onnx_runtime_passes_what_can_be_a_portable_step(cases):
    pytest.importorskip("onnxruntime")
    got = score.run(cases, targets.target("onnxruntime"))
    assert not failing(got), failing(got)
    left = {r.name for r in got.results if r.verdict == "not applicable" and not r.name.startswith("refuse_")}
    assert left == NO_PORTABLE_STEP


@pytest.mark.parametrize("broken", broken_engines.all_broken(), ids=lambda b: b.name)
def test_a_broken_engine_is_found(cases, broken):
    wrong = next((c.name for c in cases if score.judge(c, broken)[0] == "wrong"), None)
    assert wrong, "no case noticed the fault"


@pytest.mark.parametrize(
    "name", ["the first batch for ever", "one result is not fed back", "inputs in less than float32"]
)
def test_a_broken_runner_is_found(name):
    pytest.importorskip("onnxruntime")
    engine = next(e for e in broken_engines.broken_runners() if e.name == name)
    got = conformance.run(engine=engine, only="momentum_mlp*")
    assert got.target == name and got.count("wrong") >= 1


def test_the_arithmetic_has_right_derivatives():
    random = np.random.default_rng(0)
    x, w = random.standard_normal((2, 2, 4, 4)), random.standard_normal((3, 2, 3, 3))

    def f(x, w):
        h = A.max_pool2(A.tanh(A.conv2d(x, w, None, 1)))
        p = A.softmax(h.reshape(2, 12) * 2.0, 1) / A.sqrt(A.square(h).sum() + 1)
        return (A.log(p) * A.relu(p) + A.exp(-A.absolute(p))).sum()

    vx, vw = A.value(x), A.value(w)
    for base, g, k in ((x, A.gradients(f(vx, vw), [vx, vw])[0], 0), (w, A.gradients(f(vx, vw), [vx, vw])[1], 1)):
        for at in [tuple(random.integers(0, n) for n in base.shape) for _ in range(10)]:
            moved = base.astype(complex)
            moved[at] += 1e-30j
            y = f(A.value(moved), vw) if k == 0 else f(vx, A.value(moved))
            assert abs(y.a.imag / 1e-30 - g[at]) < 1e-12 * max(1, abs(g[at]))


def test_rounding_moves_results_and_tolerances_follow():
    with A.rounding(2.0**-24, 1):
        first = (A.value(np.ones(3)) / 3.0).a
    assert 0 < np.max(np.abs(first - 1 / 3)) < 2.0**-24
    assert np.array_equal((A.value(np.ones(3)) / 3.0).a, np.ones(3) / 3)


def test_a_case_survives_its_folder(cases, tmp_path):
    for c in [c for c in cases if c.name in ("adam_mlp_all", "initialize_two_sections", "type_bfloat16", "refuse_c4")]:
        write(c, tmp_path)
        again = read(tmp_path / c.name)
        assert again.model == c.model and again.tolerances == c.tolerances and again.about == c.about
        for a, b in zip(again.feeds + again.expected, c.feeds + c.expected):
            assert a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)
            assert all(a[k].dtype == np.asarray(b[k]).dtype for k in a)


def test_node_cases_are_onnx_backend_tests(tmp_path):
    """The folder of a node case is what onnx.backend.test reads."""
    from onnx import TensorProto, numpy_helper

    import onnxtrain.backend

    conformance.export(tmp_path / "suite", "gradient_first*")
    folder = tmp_path / "suite" / "gradient_first_form"
    import onnx

    rep = onnxtrain.backend.prepare(onnx.load(folder / "model.onnx"))
    sets = folder / "test_data_set_0"

    def tensors(what):
        return [
            numpy_helper.to_array(TensorProto.FromString((sets / f"{what}_{k}.pb").read_bytes()))
            for k in range(len(list(sets.glob(f"{what}_*"))))
        ]

    for got, want in zip(rep.run(tensors("input")), tensors("output")):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def shell(*args, cwd):
    cli = Path(__file__).resolve().parents[2] / ".venv/bin/onnxtrain"
    return subprocess.run([str(cli), "conformance", *args], capture_output=True, text=True, cwd=cwd)


def test_the_command(tmp_path):
    r = shell("export", "suite", "--only", "adam_mlp*", cwd=tmp_path)
    assert r.returncode == 0 and "6 cases in suite" in r.stdout, r.stdout + r.stderr
    r = shell("run", "suite", "--html", "page.html", cwd=tmp_path)
    assert r.returncode == 0 and "native: 6 of 6 pass" in r.stdout, r.stdout + r.stderr
    assert "adam_mlp_norm" in (tmp_path / "page.html").read_text()
    r = shell("run", "suite", "--backend", "onnxtrain.backend", "--json", cwd=tmp_path)
    assert r.returncode == 0 and json.loads(r.stdout)["results"][0]["verdict"] == "pass"
    (tmp_path / "mine.py").write_text(
        "import numpy as np, onnxtrain as ot\n"
        "def prepare(model): raise NotImplementedError\n"
        "class T:\n"
        "    def __init__(self, m): self.t = ot.Trainer(ot.load(m.SerializeToString()))\n"
        "    def step(self, feeds, which=None): return dict(self.t.step(feeds, which).outputs)\n"
        "    def state(self): return {k: np.array(v) * 2 for k, v in self.t.state.items()}\n"
        "    def initialize(self): self.t.initialize()\n"
        "prepare_training = T\n"
    )
    r = shell("run", "suite", "--backend", "mine", cwd=tmp_path)
    assert r.returncode == 6 and "6 wrong" in r.stdout, r.stdout + r.stderr


@pytest.mark.parametrize(
    "args, code",
    [
        (("run", "nowhere"), "OT1802"),
        (("run", "--backend", "no.such.module"), "OT1800"),
        (("run", "--backend", "json"), "OT1800"),
        (("run", "--engine", "nothing"), "OT1270"),
        (("export", "."), "OT1801"),
        (("export", "new", "--only", "x*y"), "OT1804"),
    ],
)
def test_wrong_words_are_answered(tmp_path, args, code):
    (tmp_path / "file").write_text("")
    r = shell(*args, cwd=tmp_path)
    assert r.returncode == 2 and f"error[{code}]" in r.stderr and "help:" in r.stderr, r.stdout + r.stderr


def test_a_damaged_suite_is_refused(tmp_path):
    conformance.export(tmp_path / "s", "own_sgd")
    (tmp_path / "s/own_sgd/case.json").write_text("{")
    with pytest.raises(ot.UsageError) as e:
        conformance.read(tmp_path / "s")
    assert e.value.code == "OT1802" and "damaged" in str(e.value)


def test_the_page_counts_the_cases(cases):
    page = (Path(__file__).resolve().parents[2] / "docs/training-conformance.md").read_text()
    assert page.splitlines()[2].startswith(f"{len(cases)} cases ")
    for category in dict.fromkeys(c.category for c in cases):
        count = sum(c.category == category for c in cases)
        assert f"| {category} | {count} | {count} |" in page, (category, count)


def test_an_engine_object_is_not_isolated(cases):
    engine = broken_engines.broken_runners()[0]
    model = ot.load(next(c for c in cases if c.name == "own_sgd").model)
    with pytest.raises(ot.UsageError) as e:
        ot.Trainer(model, engine=engine, isolated=True)
    assert e.value.code == "OT1270" and "entry point" in e.value.hint
