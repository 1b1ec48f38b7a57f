#!/usr/bin/env python3
"""Checks the shape of the code: what a reader may rely on without looking.

- an operator file src/ops/THEME/NAME.cpp (it defines register_NAME) has NAME_test.cpp beside it
- every pass_NAME that src/passes/passes.hpp declares is called in a test of that folder
- no file is named *_detail: a helper is named for what it holds
- no function is longer than 80 lines, in C++ and in Python
- no C++ file is longer than 400 lines, no Python file longer than 500
- a C++ or Python test asserts something
- outside of src/ops an operator is not recognised by how its name begins or ends: its record says what it is

Exit 1 with a list when something is wrong. Usage: tools/check_code.py [ROOT]
"""

import ast
import pathlib
import re
import sys

from problems import report

LONGEST = 80  # lines of a function
LONGEST_FILE = {"C++": 400, "Python": 500}
CPP = {".cpp", ".hpp", ".h", ".c"}
# Python that belongs to no test run or is no code of ours.
SKIPPED = {"build", ".venv", ".git", "node_modules"}


def files_of(root, suffixes):
    for folder in ("src", "python", "tests", "tools", "bench", "examples", "include"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and not SKIPPED & set(path.relative_to(root).parts):
                yield path


def blank_out(text):
    """The C++ text with comments, literals and preprocessor lines replaced by spaces; lines stay."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*",
        re.S | re.M,
    )
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def kind_of(statement):
    """What a brace opens outside a function, from the text before it."""
    if re.search(r"\bnamespace\b|\bextern\b", statement):
        return "scope"
    if re.search(r"\b(class|struct|union|enum)\b[^()=]*$", statement):
        return "scope"
    return "function" if ")" in statement and not re.search(r"=\s*$", statement) else "other"


def cpp_functions(text):
    """(first line, last line, text before the body) of every function of a C++ file."""
    clean = blank_out(text)
    stack, begin, line, first, head = [], 0, 1, 1, ""
    for at, c in enumerate(clean):
        if c == "\n":
            line += 1
        if "function" in stack or "other" in stack:
            if c == "{":
                stack.append("inner")
            elif c == "}":
                top = stack.pop()
                if top == "function":
                    yield first, line, head
                if top in ("function", "other"):
                    begin = at + 1
            continue
        if c == "{":
            head = clean[begin:at]
            stack.append(kind_of(head))
            first = line - head.lstrip().count("\n")
            begin = at + 1
        elif c == "}":
            if stack:
                stack.pop()
            begin = at + 1
        elif c == ";":
            begin = at + 1


def python_functions(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def name_in(head):
    return " ".join(head.split())[:70]


CPP_ASSERTS = re.compile(r"\b(?:EXPECT|ASSERT)_|\bFAIL\(|\bADD_FAILURE\(|\.(?:expect|check_grad)\(")
PYTHON_ASSERTS = re.compile(r"\bassert|\braises\b|\bpytest\.(?:raises|warns|fail)\b")


def asserting(bodies, asserts, known=()):
    """Which of these functions {name: text} assert something, by themselves or through another one."""
    found = set(known)
    while True:
        calls = re.compile("|".join([r"\b" + re.escape(name) + r"\(" for name in sorted(found)]) or r"(?!)")
        more = {n for n, t in bodies.items() if n not in found and (asserts.search(t) or calls.search(t))}
        if not more:
            return found
        found |= more


NAME_PART = re.compile(r"\bop(?:_type\(\))?\.(?:starts|ends)_with\(")


def check_cpp(path, where, problems, helpers):
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.split("\n")
    if where.startswith("src/") and not where.startswith("src/ops/") and not path.stem.endswith("_test"):
        for number, line in enumerate(lines, 1):
            if NAME_PART.search(line):
                problems.append(f"{where}:{number}: an operator recognised by a part of its name")
    bodies, tests = {}, []
    for first, last, head in cpp_functions(text):
        body = "\n".join(lines[first - 1:last])
        if last - first + 1 > LONGEST:
            problems.append(f"{where}:{first}: a function of {last - first + 1} lines: {name_in(head)}")
        if re.search(r"\bTEST(?:_F|_P)?\s*\(", head):
            tests.append((first, head, body))
        elif name := re.search(r"(\w+)\s*\(", head):
            bodies.setdefault(name.group(1), "")
            bodies[name.group(1)] += body
    if not tests:
        return
    good = asserting(bodies, CPP_ASSERTS, helpers)
    for first, head, body in tests:
        if "x" not in asserting({"x": body}, CPP_ASSERTS, good):
            problems.append(f"{where}:{first}: a test that asserts nothing: {name_in(head)}")


def check_python(path, where, problems, helpers):
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    bodies = {}
    for node in python_functions(ast.parse(text, str(path))):
        length = node.end_lineno - node.lineno + 1
        if length > LONGEST:
            problems.append(f"{where}:{node.lineno}: a function of {length} lines: {node.name}")
        bodies[node.name] = "\n".join(lines[node.lineno:node.end_lineno])
    if not path.name.startswith("test_"):
        return
    good = asserting(bodies, PYTHON_ASSERTS, helpers)
    for name in bodies:
        if name.startswith("test_") and name not in good:
            problems.append(f"{where}: a test that asserts nothing: {name}")


def helpers_of(root):
    """Functions of helper files that assert: those of tests/support, and of Python files beside tests."""
    cpp, python = {}, {}
    for path in files_of(root, CPP | {".py"}):
        where = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8", errors="replace")
        lines = text.split("\n")
        if path.suffix == ".py" and "tests" in where and not path.name.startswith("test_"):
            for node in python_functions(ast.parse(text)):
                python[node.name] = "\n".join(lines[node.lineno:node.end_lineno])
        elif where.startswith("tests/support/") or path.name in ("testing.hpp", "test_files.hpp"):
            for first, last, head in cpp_functions(text):
                if name := re.search(r"(\w+)\s*\(", head):
                    cpp[name.group(1)] = "\n".join(lines[first - 1:last])
    return asserting(cpp, CPP_ASSERTS), asserting(python, PYTHON_ASSERTS)


def check_length(path, where, problems):
    language = "Python" if path.suffix == ".py" else "C++"
    lines = path.read_bytes().count(b"\n")
    if lines > LONGEST_FILE[language]:
        problems.append(f"{where}: {lines} lines; a {language} file has at most {LONGEST_FILE[language]}")


def check_operators(root, problems):
    count = 0
    for path in sorted((root / "src" / "ops").rglob("*.cpp")):
        if path.stem.endswith("_test"):
            continue
        if re.search(rf"\bvoid register_{path.stem}\(OpTable&", path.read_text()):
            count += 1
            if not path.with_name(path.stem + "_test.cpp").exists():
                problems.append(f"{path.relative_to(root)}: there is no {path.stem}_test.cpp beside it")
    return count


def check_passes(root, problems):
    folder = root / "src" / "passes"
    tests = "".join(p.read_text() for p in folder.glob("*_test.cpp"))
    for name in re.findall(r"void (pass_\w+)\(", (folder / "passes.hpp").read_text()):
        if not re.search(rf"\b{name}\b|\"{name.removeprefix('pass_')}\"", tests):
            problems.append(f"src/passes: no test calls {name}")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]).resolve()
    problems, count = [], 0
    operators = check_operators(root, problems)
    check_passes(root, problems)
    cpp_helpers, python_helpers = helpers_of(root)
    for path in files_of(root, CPP | {".py"}):
        count += 1
        where = path.relative_to(root).as_posix()
        if path.stem.endswith("_detail"):
            problems.append(f"{where}: named _detail instead of what it holds")
        check_length(path, where, problems)
        if path.suffix == ".py":
            check_python(path, where, problems, python_helpers)
        else:
            check_cpp(path, where, problems, cpp_helpers)
    return report(problems, f"code: {count} files, {operators} operator files")


if __name__ == "__main__":
    sys.exit(main())
