"""Every hint in the sources: which commands and flags it tells to type, and under which error code."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
_CODE = re.compile(r'"(OT\d{4})"')
COMMAND = re.compile(r"\bonnxtrain ([a-z]+)\b([^;]*)")
FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]+)")


def _statement_end(text, at):
    """Where the statement that holds `at` ends: the next semicolon outside of strings."""
    inside = False
    while at < len(text):
        c = text[at]
        if inside and c == "\\":
            at += 1
        elif c == '"':
            inside = not inside
        elif c == ";" and not inside:
            break
        at += 1
    return at


def _of_cpp(path):
    text = path.read_text()
    for m in _CODE.finditer(text):
        rest = text[m.end() : _statement_end(text, m.end())]
        # literals that stand side by side are one text
        yield m.group(1), " ".join(_LITERAL.findall(re.sub(r'"\s*\n\s*"', "", rest)))


def _of_python(path):
    for call in ast.walk(ast.parse(path.read_text())):
        if not isinstance(call, ast.Call):
            continue
        texts = [_text(a) for a in call.args]
        codes = [t for t in texts if re.fullmatch(r"OT\d{4}", t)]
        if codes:
            yield codes[0], " ".join(t for t in texts if t != codes[0])


def _text(node):
    """The words of a string or f-string; what is filled in becomes a placeholder."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(v) if isinstance(v, ast.Constant) else "X" for v in node.values)
    return ""


def collect():
    """(code, file, words) of every answer that tells what to type."""
    for path in sorted(ROOT.glob("src/**/*.cpp")):
        if not path.name.endswith("_test.cpp") and not path.name.startswith("explanations"):
            for code, words in _of_cpp(path):
                yield code, str(path.relative_to(ROOT)), words
    for path in sorted((ROOT / "python/onnxtrain").glob("**/*.py")):
        for code, words in _of_python(path):
            yield code, str(path.relative_to(ROOT)), words


def actionable():
    """Codes whose answers name a command or a flag."""
    return {code for code, _, words in collect() if COMMAND.search(words) or FLAG.search(words)}
