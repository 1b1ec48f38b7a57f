"""Files of `onnxtrain convert`, and its check: one step on both sides.

A .pt that we write is a dict that torch.load reads with weights_only=True: `state_dict`, `optimizer`, `scheduler`
(their state_dicts, per training section) and `onnx`, the file it came from as bytes.
"""

import inspect
import keyword
import os
import sys

import numpy as np
import onnx
import torch

from ...converters.deterministic import without_randomness
from ...converters.feeds import difference, input_types, random_feeds
from ...errors import ModelError
from ...model import load
from ...session import Session
from ...trainer import Trainer
from ..shared import versions
from ..shared.signature import argument_names
from .build import to_torch
from .state_dict import torch_state_dict

FORMAT = "onnxtrain-1"
_TOLERANCE, _NOISE = 1e-4, 10


def convert(source, have, target, wanted, verify):
    """0 done, 6 when --verify finds a difference."""
    if wanted == "onnx":
        model = _from_program(source) if have == "program" else _from_checkpoint(source)
        model.save(target)
        made = to_torch(model) if verify else None
    else:
        model = load(source)
        made = to_torch(model)
        write = {"state_dict": lambda f: torch.save(torch_state_dict(model), f),
                 "torch": lambda f: torch.save(checkpoint(model, made), f),
                 "program": lambda f: _save_program(model, made, f)}
        _save(write[wanted], target)
    print(f"saved     {target}", file=sys.stderr)
    return _verified(model, made) if verify else 0


def _save(write, path):
    """Whole or not at all."""
    part = f"{path}.part"
    try:
        with open(part, "wb") as f:
            write(f)
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)


def checkpoint(model, made):
    """What a .pt of ours holds."""
    return {"format": FORMAT, "onnx": torch.frombuffer(bytearray(model.proto()), dtype=torch.uint8),
            "state_dict": made.module.state_dict(),
            "optimizer": [s.optimizer and s.optimizer.state_dict() for s in made.sections],
            "scheduler": [s.scheduler and s.scheduler.state_dict() for s in made.sections]}


def _from_checkpoint(path):
    """A .pt of ours, trained on or not -> the file with its state."""
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as e:  # noqa: BLE001 - whatever torch says about a foreign file
        reason = (str(e).strip() or "no reason given").splitlines()[0]
        raise ModelError(
            f"'{path}' is not a file that torch.load reads safely ({type(e).__name__}: {reason})",
            "OT1734",
            "give a .pt that `onnxtrain convert` wrote; a module of your own goes in Python: "
            "ot.from_torch(module, inputs, targets, loss=..., optimizer=...)",
        ) from None
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise ModelError(f"'{path}' holds weights without a model: a state_dict does not say what to compute", "OT1734",
                         "in Python: ot.from_torch(module, inputs, targets, loss=..., optimizer=...)")
    made = to_torch(load(saved["onnx"].numpy().tobytes()))
    made.module.load_state_dict(saved["state_dict"], strict=True)
    for s, optimizer, scheduler in zip(made.sections, saved["optimizer"], saved["scheduler"]):
        if optimizer:
            s.optimizer.load_state_dict(optimizer)
        if scheduler:
            s.scheduler.load_state_dict(scheduler)
    return made.model()


def _first_line(error):
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _from_program(path):
    """torch.export.save's file -> inference model."""
    import onnxtrain

    try:
        program = torch.export.load(path)
    except Exception as e:  # noqa: BLE001 - whatever torch says about a foreign file
        raise ModelError(
            f"'{path}' is not a program that torch.export.load reads: {_first_line(e)}",
            "OT1735",
            "write it with torch.export.save(torch.export.export(module, inputs), path)",
        ) from None
    args, kwargs = program.example_inputs or ((), {})
    if not args and not kwargs:
        raise ModelError(
            f"'{path}' holds no example inputs", "OT1736", "torch.export.export keeps those that it is given"
        )
    module = program.module()
    named = {**dict(zip(argument_names(module, len(args)), args)), **kwargs}
    return onnxtrain.from_torch(module, named if kwargs else args)


def _named(f, names):
    """f(*args) with these names for its arguments, which the program keeps."""
    def call(*args):
        return f(*args)

    usable = all(n.isidentifier() and not keyword.iskeyword(n) for n in names)
    kept = names if usable else [f"input_{k}" for k in range(len(names))]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    call.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in kept])
    return call


def _save_program(model, made, file):
    """The main graph as torch.export's program; open sizes stay open."""
    names = made.module.input_names
    types = input_types(model)
    feeds = random_feeds(types, names, np.random.default_rng(0))
    auto = versions.automatic_dimension()
    open_ = [{k: auto for k, size in enumerate(types[n].shape) if not isinstance(size, int)} for n in names]
    module = made.module.eval()
    module.forward = _named(module.forward, names)
    try:
        program = versions.export(module, tuple(torch.from_numpy(feeds[n]) for n in names), tuple(open_))
    except Exception as e:  # noqa: BLE001 - whatever torch.export says about a graph
        raise ModelError(
            f"torch.export does not take this graph: {_first_line(e)}",
            "OT1738",
            "write a .pt instead",
        ) from None
    finally:
        del module.forward
    torch.export.save(program, file)


# ---- one step on both sides
def _verified(model, made):
    rng = np.random.default_rng(0)
    differences = {}
    proto = onnx.ModelProto.FromString(model.proto())
    if without_randomness(proto):  # both sides draw numbers of their own
        model = load(proto.SerializeToString())
        made = to_torch(model)
    noise = {}
    if made.sections and made.sections[0].optimizer is not None:
        for k, section in enumerate(made.sections):
            feeds = random_feeds(input_types(model, k), section.input_names, rng)
            back = _compare_step(model, made, section, k, feeds, differences)
            if max(differences.values()) > _TOLERANCE:
                _add_noise(model, back, k, feeds, noise)
    else:
        feeds = random_feeds(input_types(model), made.module.input_names, rng)
        made.module.eval()
        with torch.no_grad():
            got = made.module(**{k: torch.from_numpy(v) for k, v in feeds.items()})
        got = got if isinstance(got, tuple) else (got,)
        for (name, want), have in zip(Session(model).run(feeds).items(), got):
            differences[name] = difference(want, have.numpy())
    name = max(
        differences, key=lambda n: (differences[n] > max(_TOLERANCE, _NOISE * noise.get(n, 0.0)), differences[n])
    )
    good = differences[name] <= max(_TOLERANCE, _NOISE * noise.get(name, 0.0))
    one = len(differences) == 1
    verdict = (
        "1 tensor " + ("agrees" if good else "does NOT agree")
        if one
        else f"{len(differences)} tensors " + ("agree" if good else "do NOT agree")
    )
    told = (
        f"; rounding: PyTorch itself differs by {noise[name]:.2g} there between float32 and float64"
        if noise.get(name)
        else ""
    )
    print(f"verify    {verdict}, largest difference {differences[name]:.3g} ('{name}'){told}")
    return 0 if good else 6


def _compare_step(model, made, section, k, feeds, differences):
    trainer = Trainer(model)
    here = trainer.step(feeds, which=k).loss
    made.module.train()
    there = section.step({n: torch.from_numpy(v) for n, v in feeds.items()})
    differences[f"loss of section {k}" if k else "loss"] = difference(np.float64(here), np.float64(there))
    back = Trainer(made.model())
    for name in trainer.state:
        differences[name] = max(differences.get(name, 0.0), difference(trainer.state[name], back.state[name]))
    return back


def _add_noise(model, back, k, feeds, noise):
    """What float32 itself changes in PyTorch: a gradient that is 0 but for rounding becomes a whole step of Adam."""
    wide = lambda t: t.double() if isinstance(t, torch.Tensor) and t.dtype == torch.float32 else t
    made = to_torch(model)
    made.module.double().train()
    section = made.sections[k]
    for state in section.optimizer.state.values():
        state.update({key: wide(v) for key, v in state.items() if key != "step"})
    try:
        section.step({n: wide(torch.from_numpy(v)) for n, v in feeds.items()})
    except (RuntimeError, TypeError):
        return  # the graph has casts to float32: no yardstick
    exact = Trainer(made.model())
    for name in back.state:
        noise[name] = max(noise.get(name, 0.0), difference(exact.state[name], back.state[name]))
