"""docs/adding-an-operator.md and docs/adding-an-optimizer.md followed to the letter: the files of a page are added to
a copy of the sources, only they and the table of operators are compiled, and their tests run. Everything else comes
from build/release."""

import ast
import json
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"


def files_of(page):
    """{path: text} of the C++ files that a page shows, each behind a line with its path."""
    text = (ROOT / "docs" / page).read_text()
    return dict(re.findall(r"^`(src/[\w/]+\.[ch]pp)`:\n\n```cpp\n(.*?)^```", text, re.M | re.S))


class Copy:
    """A copy of the sources with the page's files in it."""

    def __init__(self, folder, page):
        self.folder = folder
        for name in ("src", "tests/support", "include", "cmake"):
            shutil.copytree(ROOT / name, folder / name)
        self.files = files_of(page)
        for path, text in self.files.items():
            assert not (folder / path).exists(), f"{path} is there already: the page needs another name"
            (folder / path).write_text(text)
        self.commands = {c["file"]: c for c in json.loads((BUILD / "compile_commands.json").read_text())}
        self.objects = []

    def like(self, pattern):
        """Flags of a file of the build, without precompiled headers, with the copy's include folders."""
        command = next(c for f, c in sorted(self.commands.items()) if re.search(pattern, f))
        words, flags = shlex.split(command["command"]), []
        while words:
            word = words.pop(0)
            if word in ("-o", "-c", "-include"):
                words.pop(0)
            elif word != "-Winvalid-pch":
                ours = word.startswith(f"-I{ROOT}") and not word.startswith(f"-I{BUILD}")
                flags.append(word.replace(f"-I{ROOT}", f"-I{self.folder}") if ours else word)
        return flags[1:] if "ccache" in flags[0] else flags

    def compile(self, path, flags):
        out = self.folder / (pathlib.Path(path).stem + ".o")
        subprocess.run([*flags, "-O1", "-c", self.folder / path, "-o", out], check=True, cwd=self.folder)
        self.objects.append(out)

    def table(self):
        """The table of operators of the copy, as the build writes it."""
        script = self.folder / "table.cmake"
        script.write_text(f'set(CMAKE_SOURCE_DIR "{self.folder}")\nset(CMAKE_BINARY_DIR "{self.folder}")\n'
                          "include(${CMAKE_CURRENT_LIST_DIR}/cmake/op_table.cmake)\n")
        text = (self.folder / "cmake/op_table.cmake").read_text().replace("CONFIGURE_DEPENDS", "")
        (self.folder / "cmake/op_table.cmake").write_text(text)  # scripts cannot watch folders
        subprocess.run(["cmake", "-P", script], check=True, capture_output=True)
        return "generated/op_table.cpp"

    def link(self):
        """The program of the page's tests: its objects, our helpers of tests, and the library of the build."""
        done = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "-s", "onnxtrain_tests"], check=True,
                              capture_output=True, text=True)
        words = shlex.split(done.stdout.strip().splitlines()[-1])
        words = words[words.index("&&") + 1:] if "&&" in words else words
        libraries = [w for w in words if re.search(r"\.a$|\.so|^-l|^-fopenmp|^-Wl,-rpath", w)]
        program = self.folder / "page_test"
        subprocess.run([words[0], "-o", program, *self.objects, *libraries], check=True, cwd=BUILD)
        return program


needs_build = pytest.mark.skipif(not (BUILD / "libonnxtrain_core.a").exists(),
                                 reason="needs build/release (make build)")


def follow(folder, page, theme):
    """The page's two files compiled and its tests run; the text of its source."""
    copy = Copy(folder, page)
    assert len(copy.files) == 2  # as the page says
    source, test = sorted(copy.files)
    copy.compile(source, copy.like(rf"src/ops/{theme}/\w+\.cpp$"))
    copy.compile(copy.table(), copy.like(r"generated/op_table\.cpp$"))
    flags = copy.like(r"ot_more_tests\.dir/|tests/support/op_case\.cpp$")
    copy.compile(test, flags)
    copy.compile("tests/support/op_case.cpp", flags)
    done = subprocess.run([copy.link()], capture_output=True, text=True)
    tests = copy.files[test].count("TEST(")
    assert done.returncode == 0 and f"[  PASSED  ] {tests} test" in done.stdout, done.stdout + done.stderr
    return copy.files[source]


@needs_build
def test_adding_an_operator(tmp_path):
    follow(tmp_path, "adding-an-operator.md", "math")


@needs_build
def test_adding_an_optimizer(tmp_path):
    source = follow(tmp_path, "adding-an-optimizer.md", "optim")
    settings = re.findall(r'\{"(\w+)", ', re.search(r"\.settings = (.*?)\.node", source, re.S)[1])
    page = (ROOT / "docs" / "adding-an-optimizer.md").read_text()
    stub = re.search(r"^`python/onnxtrain/__init__\.pyi`:\n\n```python\n(.*?)^```", page, re.M | re.S)[1]
    whole = ast.parse((ROOT / "python/onnxtrain/__init__.pyi").read_text() + stub)  # as the page says
    made = whole.body[-1]
    assert made.name == re.search(r'\.class_name = "(\w+)"', source)[1]
    assert [a.arg for a in made.body[0].args.args] == ["self", *settings, "overrides"]
