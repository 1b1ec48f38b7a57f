"""The layers check finds what it is there for."""

import pathlib
import subprocess
import sys

TOOL = pathlib.Path(__file__).resolve().parent.parent / "tools" / "check_layers.py"
RULES = "core:\nops: core\nonnx: core\nheader dnnl: kernels/*_onednn.*\nheader google/protobuf/: onnx\n"


def check(tmp_path, files, rules=RULES):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/layers.txt").write_text(rules)
    for name, text in files.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = subprocess.run([sys.executable, TOOL, tmp_path], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_allowed(tmp_path):
    code, out = check(tmp_path, {"core/a.hpp": "", "ops/b.cpp": '#include "core/a.hpp"\n'}, "core:\nops: core\n")
    assert code == 0, out


def test_permission_that_nobody_uses(tmp_path):
    code, out = check(tmp_path, {"core/a.hpp": "", "ops/b.cpp": ""}, "core:\nops: core\n")
    assert code == 1
    assert "docs/layers.txt: 'ops' may include 'core', and no file does" in out


def test_cycle_on_the_second_level(tmp_path):
    files = {"ops/math/a.hpp": '#include "ops/nn/b.hpp"\n', "ops/nn/b.hpp": '#include "ops/math/a.hpp"\n'}
    code, out = check(tmp_path, files, "ops:\n")
    assert code == 1
    assert "cycle in includes: ops/math -> ops/nn -> ops/math" in out


def test_forbidden(tmp_path):
    code, out = check(tmp_path, {"ops/b.hpp": "", "core/a.cpp": '\n#include "ops/b.hpp"\n'})
    assert code == 1
    assert "src/core/a.cpp:2: 'core' may not include 'ops/b.hpp'" in out


def test_tests_may_include_anything(tmp_path):
    code, out = check(tmp_path, {"ops/b.hpp": "", "core/a_test.cpp": '#include "ops/b.hpp"\n'}, "core:\nops:\n")
    assert code == 0, out


def test_cycle(tmp_path):
    files = {"core/a.hpp": '#include "ops/b.hpp"\n', "ops/b.hpp": '#include "core/a.hpp"\n'}
    code, out = check(tmp_path, files)
    assert code == 1
    assert "cycle in includes: core -> ops -> core" in out


def test_third_party_headers(tmp_path):
    files = {"ops/b.cpp": "#include <dnnl.hpp>\n", "onnx/c.cpp": "#include <google/protobuf/any.h>\n"}
    code, out = check(tmp_path, files)
    assert code == 1
    assert "src/ops/b.cpp:1: <dnnl.hpp> belongs to kernels/*_onednn.* only" in out
    assert "onnx/c.cpp" not in out


def test_unknown_folder_and_missing_header(tmp_path):
    code, out = check(tmp_path, {"new/a.cpp": "", "ops/b.cpp": '#include "core/gone.hpp"\n'})
    assert code == 1
    assert "folder 'new' has no line" in out
    assert "there is no header 'core/gone.hpp'" in out
