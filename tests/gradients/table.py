"""The table of operators, as the program has it, beside ONNX's schemas: who has a gradient.

    .venv/bin/python tests/gradients/table.py            # one line per operator
"""

import collections
import dataclasses
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import onnx

DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")


@dataclasses.dataclass
class Row:
    domain: str
    op: str
    kind: str  # "rule", "standard form", "function body", "reason", "missing"
    text: str
    tagged: bool  # ONNX marks an input as differentiable
    versions: tuple

    @property
    def name(self):
        return f"{self.domain or 'ai.onnx'}.{self.op}"


def program():
    for p in (os.environ.get("ONNXTRAIN"), Path(__file__).resolve().parents[2] / "build/release/onnxtrain",
              Path(sys.executable).with_name("onnxtrain")):
        if p and Path(p).exists():
            return str(p)
    raise FileNotFoundError("the onnxtrain program; set ONNXTRAIN")


@functools.cache
def records():
    """{(domain, name): [record]} in order of their first version."""
    out = collections.defaultdict(list)
    for r in json.loads(subprocess.run([program(), "operators", "--json"], check=True, capture_output=True).stdout):
        out["" if r["domain"] == "ai.onnx" else r["domain"], r["name"]].append(r)
    return out


def _is_float(schema, formal):
    texts = {formal.type_str}
    for c in schema.type_constraints:
        if c.type_param_str == formal.type_str:
            texts = set(c.allowed_type_strs)
    return any(t in text for text in texts for t in ("float", "double"))


@functools.cache
def schemas():
    """{(domain, name): [schema]} of every version, in order."""
    out = collections.defaultdict(list)
    for s in onnx.defs.get_all_schemas_with_history():
        if s.domain in DOMAINS:
            out[s.domain, s.name].append(s)
    for v in out.values():
        v.sort(key=lambda s: s.since_version)
    return out


def _kind(domain, op, schema):
    found = records().get((domain, op))
    if not found:
        if schema.has_function or schema.has_context_dependent_function:
            return "function body", ""
        return "missing", ""
    last = found[-1]
    if all(r["gradient"] or r["lowered"] for r in found):
        return ("rule", "") if last["gradient"] else ("standard form", "")
    if op == "Gradient":
        return "rule", "expanded by the reverse walk"
    return ("reason", last["why_not"]) if last["why_not"] else ("missing", "")


@functools.cache
def rows():
    out = []
    for (domain, op), versions in sorted(schemas().items()):
        schema = versions[-1]
        kind, text = _kind(domain, op, schema)
        tagged = any(i.differentiation_category == onnx.defs.OpSchema.DifferentiationCategory.Differentiable
                     and _is_float(schema, i)
                     for i in schema.inputs)
        out.append(Row(domain, op, kind, text, tagged, tuple(s.since_version for s in versions if not s.deprecated)))
    return out


def main():
    for r in rows():
        print(f"{r.name:40} {r.kind:14} {'tagged' if r.tagged else '      '} {r.text}")
    print(dict(collections.Counter(r.kind for r in rows())), len(rows()), "operators", file=sys.stderr)


if __name__ == "__main__":
    main()
