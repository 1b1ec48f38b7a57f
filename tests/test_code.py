"""The check of the code's shape finds what it is there for."""

import pathlib
import subprocess
import sys

TOOL = pathlib.Path(__file__).resolve().parent.parent / "tools" / "check_code.py"
OPERATOR = "void register_add(OpTable& t) {}\n"


def check(tmp_path, files):
    for name, text in {"src/passes/passes.hpp": "", **files}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = subprocess.run([sys.executable, TOOL, tmp_path], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_an_operator_needs_its_test(tmp_path):
    code, out = check(tmp_path, {"src/ops/math/add.cpp": OPERATOR, "src/ops/math/helper.cpp": ""})
    assert code == 1 and "src/ops/math/add.cpp: there is no add_test.cpp beside it" in out
    assert "helper" not in out
    code, out = check(tmp_path, {"src/ops/math/add_test.cpp": "TEST(Add, Values) { EXPECT_EQ(1, 1); }\n"})
    assert code == 0, out


def test_a_pass_needs_a_test(tmp_path):
    files = {"src/passes/passes.hpp": "void pass_cse(Graph& g, const PassContext& c);\n"}
    code, out = check(tmp_path, files)
    assert code == 1 and "no test calls pass_cse" in out
    code, out = check(tmp_path, files | {"src/passes/cse_test.cpp": "TEST(Cse, A) { EXPECT_EQ(run(pass_cse), 1); }\n"})
    assert code == 0, out


def test_names(tmp_path):
    code, out = check(tmp_path, {"src/ops/math/add_detail.hpp": ""})
    assert code == 1 and "named _detail" in out


def test_operators_by_a_part_of_their_name(tmp_path):
    text = 'bool f(const Node& n) { return n.op.ends_with("Grad"); }\n'
    code, out = check(tmp_path, {"src/passes/a.cpp": text, "src/ops/nn/b.cpp": text, "src/passes/a_test.cpp": text})
    assert code == 1 and "src/passes/a.cpp:1: an operator recognised by a part of its name" in out
    assert "b.cpp" not in out and "a_test.cpp" not in out


def long_function(lines):
    return "namespace a {\nint f(int x) {\n" + "  x += 1;  // }\n" * (lines - 3) + "  return x;\n}\n}\n"


def test_length_of_functions(tmp_path):
    code, out = check(tmp_path, {"src/core/a.cpp": long_function(80)})
    assert code == 0, out
    code, out = check(tmp_path, {"src/core/a.cpp": long_function(81)})
    assert code == 1 and "src/core/a.cpp:2: a function of 81 lines: int f(int x)" in out
    python = "def f():\n" + "    x = 1\n" * 80
    code, out = check(tmp_path, {"src/core/a.cpp": "", "tools/a.py": python})
    assert code == 1 and "tools/a.py:1: a function of 81 lines: f" in out


def test_length_of_files(tmp_path):
    code, out = check(tmp_path, {"src/core/a.cpp": "int x;\n" * 400, "tools/a.py": "x = 1\n" * 500})
    assert code == 0, out
    code, out = check(tmp_path, {"src/core/a.cpp": "int x;\n" * 401, "tools/a.py": "x = 1\n" * 501})
    assert code == 1 and "src/core/a.cpp: 401 lines; a C++ file has at most 400" in out
    assert "tools/a.py: 501 lines; a Python file has at most 500" in out


def test_braces_that_are_no_functions(tmp_path):
    text = 'struct A {\n  int v[3] = {1, 2, 3};\n  const char* s = R"({{{)";\n' + "  int w;\n" * 90 + "};\n"
    code, out = check(tmp_path, {"src/core/a.hpp": text + 'const char c = \'{\';\n#define X {\n' + long_function(20)})
    assert code == 0, out


def test_tests_that_assert_nothing(tmp_path):
    helper = "void shown(int x) { EXPECT_EQ(x, 1); }\n"
    files = {"src/core/a_test.cpp": helper + "TEST(A, Good) { shown(1); }\nTEST(A, Idle) { run(); }\n",
             "tests/test_a.py": "def test_idle():\n    run()\n\n\ndef test_good():\n    assert run()\n"}
    code, out = check(tmp_path, files)
    assert code == 1 and "a test that asserts nothing: TEST(A, Idle)" in out
    assert "test_idle" in out and "Good" not in out and "test_good" not in out
