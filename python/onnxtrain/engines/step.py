"""A training section for an engine: the model's bytes and what its manifest says, which is checked."""

import json
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..errors import Error, UsageError

VERSION = 1
_ROLES = {"data", "target", "learning_rate", "state", "counter", "random"}
_STATE = {"learning_rate", "state", "counter"}
_OTHER_TYPES = {"bfloat16", ""}  # of the schema, without a name in numpy


def wrong(text):
    return UsageError(f"the step's manifest {text}", "OT1773", "export the step again")


def read_manifest(text):
    """The manifest as it is, if a step can be in it."""
    try:
        manifest = json.loads(text)
    except ValueError as e:
        raise wrong(f"is no JSON: {e}") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("sections"), list) or not manifest["sections"]:
        raise wrong("has no list of sections")
    if manifest.get("version", VERSION) != VERSION:
        raise wrong(f"has the version {manifest['version']}; this onnxtrain reads version {VERSION}")
    return manifest


def _differ(a, b):
    """Two shapes that cannot be the same; names and unknown sizes fit everything."""
    if a is None or b is None:
        return False
    return len(a) != len(b) or any(isinstance(x, int) and isinstance(y, int) and x != y for x, y in zip(a, b))


def _rows(section, key, wanted):
    """The list `key` of a section, each entry with the texts in `wanted`."""
    rows = section.get(key) if isinstance(section, dict) else None
    if not isinstance(rows, list):
        raise wrong(f"has no list '{key}'")
    for row in rows:
        for name in wanted:
            if not isinstance(row, dict) or not isinstance(row.get(name), str):
                raise wrong(f"has an entry of '{key}' without '{name}'")
    return rows


def _check_type(port):
    try:
        port["type"] in _OTHER_TYPES or np.dtype(port["type"])
    except TypeError:
        raise wrong(f"gives '{port['name']}' the type '{port['type']}', which there is not") from None
    if not isinstance(port.get("shape"), (list, type(None))):
        raise wrong(f"gives '{port['name']}' the shape {port['shape']!r}; it is a list of sizes")


def check_section(section):
    """A manifest that was changed may name what is not there, or feed a tensor into one of another kind."""
    inputs = {i["name"]: i for i in _rows(section, "inputs", ("name", "role", "type"))}
    outputs = {o["name"]: o for o in _rows(section, "outputs", ("name", "type"))}
    for port in (*inputs.values(), *outputs.values()):
        _check_type(port)
    for port in inputs.values():
        if port["role"] not in _ROLES:
            raise wrong(f"gives '{port['name']}' the role '{port['role']}'; known: {', '.join(sorted(_ROLES))}")
    fed = {}
    for f in _rows(section, "feedback", ("output", "input")):
        out, to = f["output"], f["input"]
        lost = out not in outputs and f"output '{out}'" or to not in inputs and f"input '{to}'"
        if lost:
            raise wrong(f"feeds '{out}' back to '{to}', but the step has no {lost}")
        a, b = outputs[out], inputs[to]
        if a["type"] and b["type"] and a["type"] != b["type"] or _differ(a.get("shape"), b.get("shape")):
            raise wrong(f"feeds '{out}' ({a['type']}{a.get('shape')}) back to '{to}' ({b['type']}{b.get('shape')}): "
                        "they do not fit")
        if b["role"] not in _STATE:
            raise wrong(f"feeds '{out}' back to '{to}', which has the role '{b['role']}' and is no state")
        if fed.setdefault(to, out) != out:
            raise wrong(f"feeds both '{fed[to]}' and '{out}' back to '{to}'")
    loss = section.get("loss") or {}
    if not isinstance(loss, dict) or loss.get("output") not in (None, *outputs):
        raise wrong(f"says that the loss is {loss}, but the step has no such output")


def _of_file(model):
    """The manifest inside the model (metadata_props); None where a tool dropped it."""
    from ..model import load

    try:
        said = load(model).info.get("metadata", {}).get("onnxtrain.step_manifest")
        return said and json.loads(said)
    except (Error, ValueError):
        return None  # whoever compiles the model says what is wrong with it


def _check_belongs(section, model):
    """State that returns to another place, or not at all, fits by its shape: the copy in the file tells."""
    manifest = _of_file(model)
    if not manifest:
        return
    number = section.get("section", 0)
    own = next((s for s in manifest["sections"] if s.get("section", 0) == number), None)
    if own is None:
        raise wrong(f"is of section {number}, which the model's own manifest does not have")
    for key in ("inputs", "outputs"):
        here, there = ({(p["name"], p.get("role", "")) for p in s[key]} for s in (section, own))
        if here != there:
            raise wrong(f"and the one inside of the model do not agree on the {key} ('{min(here ^ there)[0]}')")
    here, there = ({(f["output"], f["input"]) for f in s["feedback"]} for s in (section, own))
    if here != there:
        out, to = min(here ^ there)
        raise wrong(f"and the one inside of the model do not agree: only one of them feeds '{out}' back to '{to}'")


@dataclass
class Step:
    """One training section for a runtime: the model's bytes and what its manifest says."""

    model: bytes
    section: dict
    state: dict = field(default_factory=dict)  # initial values by input name

    def __post_init__(self):
        check_section(self.section)

    @classmethod
    def of(cls, model, manifest, state):
        """The first section of a manifest that lies beside the model (its text)."""
        section = read_manifest(manifest)["sections"][0]
        made = cls(model, section, state)
        _check_belongs(section, model)
        return made

    def inputs(self, *roles):
        return [i["name"] for i in self.section["inputs"] if i["role"] in roles]

    @cached_property
    def data(self):
        return self.inputs("data", "target", "random")

    @cached_property
    def states(self):
        return self.inputs("state", "learning_rate", "counter")

    @cached_property
    def outputs(self):
        return [o["name"] for o in self.section["outputs"]]

    @cached_property
    def loss(self):
        return (self.section.get("loss") or {}).get("output")

    @cached_property
    def feedback(self):
        """{output: [inputs that it becomes]}"""
        to = {}
        for f in self.section["feedback"]:
            to.setdefault(f["output"], []).append(f["input"])
        return to

    @cached_property
    def plain(self):
        """Outputs that are not state."""
        return [o for o in self.outputs if o not in self.feedback]

    @cached_property
    def _ports(self):
        return {i["name"]: i for i in self.section["outputs"] + self.section["inputs"]}

    @cached_property
    def fed(self):
        """Inputs that an output becomes."""
        return {to for targets in self.feedback.values() for to in targets}

    def type_of(self, name):
        return np.dtype(self._ports[name]["type"])

    def shape_of(self, name):
        return self._ports[name]["shape"]

    def range_of(self, name):
        """Whole numbers that an input may hold, {"least", "most"} and perhaps "ignored"; None: any."""
        return self._ports[name].get("range")
