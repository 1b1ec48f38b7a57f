"""From a live module to functional FX graphs: one in training mode with the loss, one in evaluation mode.

Nothing of the user's module changes: a copy of its structure is traced that shares the tensors; torch.export computes
with fake tensors only.
"""

import contextlib
import copy
import traceback

import torch

from ...converters.obstacles import INSTEAD, Obstacles
from ...errors import ModelError
from ..shared import versions
from . import in_place_ops, packed_sequences, python_random
from .call import flatten_outputs
from .emit import static
from .lower import TABLE, key_of
from .obstacles import autograd_functions, place, place_of_error
from .trace_mode import Traceable, unchecked_distributions


def own_copy(module):
    """A copy with tensors of its own, for running code that may write to them."""
    memo = {id(p): torch.nn.Parameter(p.detach().clone(), p.requires_grad) for p in module.parameters()}
    return structural_copy(module, with_buffers=True, memo=memo)


def structural_copy(module, with_buffers=False, memo=None):
    """A copy whose parameters (and buffers, unless `with_buffers`) are the same tensors, or those that `memo` names."""
    memo = memo if memo is not None else {id(p): p for p in module.parameters()}
    for sub in module.modules():
        for t in list(sub.__dict__.values()):
            if isinstance(t, torch.Tensor):
                memo.setdefault(id(t), t)
    for b in module.buffers():
        memo[id(b)] = b.detach().clone() if with_buffers else b
    return copy.deepcopy(module, memo)


def set_mode(module, training):
    """train() or eval(); a module made from an exported program has one form only and keeps it."""
    try:
        return module.train(training)
    except NotImplementedError:
        return module


class Wrapper(torch.nn.Module):
    """Calls the module and the loss on a flat list of tensors; gives [loss] + outputs as a flat list."""

    def __init__(self, module, loss, call, training):
        super().__init__()
        self.module = module
        if isinstance(loss, torch.nn.Module):
            self.loss = loss
        else:
            self.__dict__["loss"] = loss
        self.__dict__["call"], self.__dict__["with_loss"] = call, training
        names = []  # filled while tracing; a closure, because export restores attributes
        self.__dict__["note"], self.__dict__["names_seen"] = names.__setitem__, lambda: names

    def forward(self, flat):
        args, kwargs = self.call.arguments(flat)
        with assigned_buffers(self.module):
            out = self.module(*args, **kwargs)
        found = flatten_outputs(out)
        self.note(slice(None), [n for n, _ in found])
        tensors = [t for _, t in found]
        if not self.with_loss:
            return tensors
        return [compute_loss(self.loss, out, self.call.target(flat)), *tensors]


@contextlib.contextmanager
def assigned_buffers(module):
    """forward may put another tensor in a buffer's place: that is written into the buffer, which torch.export sees."""
    before = [(sub, name, t) for sub in module.modules() for name, t in sub._buffers.items() if t is not None]
    yield
    for sub, name, t in before:
        now = sub._buffers.get(name)
        if isinstance(now, torch.Tensor) and now is not t:
            t.copy_(now.detach())
            sub._buffers[name] = t


def compute_loss(loss, out, target):
    if loss is None:  # the module computes it
        value = out["loss"] if isinstance(out, dict) else getattr(out, "loss", None)
        value = out if isinstance(out, torch.Tensor) else value
    elif target is None:
        value = loss(out) if _takes_one(loss) else loss(out, None)
    else:
        value = loss(out, target)
    if not isinstance(value, torch.Tensor) or value.numel() != 1 or not value.dtype.is_floating_point:
        kind = f"a tensor of shape {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
        raise ModelError(f"the loss gave {kind}, not one floating-point number", "OT1608",
                         "loss(outputs, targets) must return a scalar tensor; reduction='mean' or 'sum'")
    return value if value.dim() == 0 else value.reshape(())


def _takes_one(f):
    import inspect

    try:
        p = inspect.signature(f.forward if isinstance(f, torch.nn.Module) else f).parameters.values()
    except (TypeError, ValueError):
        return False
    return sum(x.default is x.empty and x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD) for x in p) <= 1


class TracedGraph:
    """A functional FX graph with what its inputs and outputs are."""

    def __init__(self, program, wrapper):
        self.output_names = list(wrapper.names_seen())
        self.places = _written(program.graph_module)
        self.other_sizes = versions.other_sizes(program)
        self.use(program)

    def use(self, program):
        self.program, self.graph = program, program.graph_module.graph
        self.signature = program.graph_signature

    def first_size(self):
        """The first size of the first input if forward fixed it, otherwise None."""
        return fixed_first_size(self.program)


def fixed_first_size(program):
    names = set(program.graph_signature.user_inputs)
    val = next(
        (n.meta.get("val") for n in program.graph_module.graph.nodes if n.op == "placeholder" and n.name in names), None
    )
    return static(val.shape[0]) if isinstance(val, torch.Tensor) and val.dim() else None


def _written(gm, outer=None):
    """{placeholder that an operator writes to: where}; the functional form does not know it any more."""
    found, names = {}, {}
    given = iter(outer or ())
    for n in gm.graph.nodes:
        if n.op == "placeholder":
            a = next(given, n)
            names[n] = a.name if isinstance(a, torch.fx.Node) else ""
        elif n.op == "call_function" and versions.is_grad_mode_region(n.target):
            sub = getattr(gm, getattr(n.args[1], "target", ""), None)
            if sub is not None:
                for name, where in _written(sub, n.args[2:]).items():
                    found.setdefault(name, where)
        elif n.op == "call_function":
            for _, changed in in_place_ops.changed_arguments(n):
                if changed in names:
                    found.setdefault(names[changed], place(n))
    return found


def dynamic_shapes(tensors, dynamic):
    auto = versions.automatic_dimension()
    return ([({0: auto} if dynamic and t.dim() and t.shape[0] > 1 else None) for t in tensors],)


def example_for_export(tensors, dynamic):
    """A batch of one would fix the size: it is traced with two equal rows."""
    tensors = [t.detach() for t in tensors]
    if not dynamic or not tensors[0].dim() or tensors[0].shape[0] != 1:
        return tensors
    return [torch.cat([t, t]) if t.dim() and t.shape[0] == 1 else t for t in tensors]


def trace(module, loss, call, training, dynamic, obstacles):
    """The functional graph of the module (and the loss, in training)."""
    wrapper = Wrapper(module, loss, call, training)
    example = example_for_export(call.tensors, dynamic)
    wrapper.training = training
    modules = {id(m): n.removeprefix("module").removeprefix(".") for n, m in wrapper.named_modules()}
    noted, failures = Obstacles(), []
    devices = [torch.device("cuda", k) for k in range(torch.cuda.device_count())] if torch.cuda.is_initialized() else []

    def export(answers=None):
        mode = Traceable(noted, modules, answers)
        try:
            with (
                torch.random.fork_rng(devices=devices),
                torch.enable_grad(),
                autograd_functions(noted),
                python_random.noted(noted, modules),
                unchecked_distributions(),
                packed_sequences.unchecked_sizes(),
                mode,
            ):
                return versions.export(wrapper, (example,), dynamic_shapes(example, dynamic)), mode
        except ModelError:
            raise
        except Exception as e:  # noqa: BLE001 - whatever torch refuses
            failures.append(_explain(e, dynamic, modules))
            return None, mode

    program, mode = export()
    if program is None:
        wrong = _eager_failure(wrapper, example, devices)
        if wrong is not None:
            obstacles.add(*wrong)
            obstacles.raise_()
        program, _ = export(mode.answers)  # the rest of it, so that every obstacle is named at once
    for item in [*noted.items, *_untold(failures, noted)]:
        obstacles.add(*item)
    if program is None:
        obstacles.raise_()
    if example[0].shape != call.tensors[0].shape and fixed_first_size(program) is not None:
        # what was fixed is the size of the trace, not of the example
        return trace(module, loss, call, training, False, obstacles)
    packed_sequences.check(program.graph_module.graph, obstacles)
    graph = TracedGraph(program, wrapper)
    try:
        graph.use(_functional(program))
    except Exception as e:  # noqa: BLE001
        _complex_numbers(program, obstacles)
        if not obstacles:
            obstacles.add(*_explain(e, dynamic, modules))
        obstacles.raise_()
    return graph


_OWN_TENSORS = "forward differentiates by itself", "forward puts another tensor"


def _untold(failures, noted):
    """torch's refusals of what was not noted already."""
    told = {where for _, where, _ in noted.items}
    known = any(what.startswith(_OWN_TENSORS) for what, *_ in noted.items)
    return [f for f in failures if not (f[1] and f[1] in told or known and f[0].startswith(_OWN_TENSORS))]


NOT_TAKEN = "give examples (shape, type) that the module takes, in train() and in eval(), with and without gradients"


def torch_fails(e, modules=None):
    """The obstacle that PyTorch itself raises an error on the examples."""
    text = (str(e).strip() or "no reason given").split("\n")[0]
    return f"PyTorch itself fails on the examples ({type(e).__name__}): {text}", place_of_error(e, modules), NOT_TAKEN


def _eager_failure(wrapper, example, devices):
    """What is wrong when the module does not even run; None when it does."""
    copied, loss = own_copy(wrapper.module), wrapper.loss
    if isinstance(loss, torch.nn.Module):
        loss = own_copy(loss)
    names = {id(m): n for n, m in copied.named_modules()}
    try:
        with torch.random.fork_rng(devices=devices), torch.enable_grad():
            Wrapper(copied, loss, wrapper.call, wrapper.with_loss)([t.clone() for t in example])
    except ModelError:
        raise
    except Exception as e:  # noqa: BLE001 - whatever the user's code raises
        return torch_fails(e, names)
    return None


def _complex_numbers(program, obstacles):
    for n in program.graph_module.graph.nodes:
        val = n.meta.get("val")
        if n.op == "call_function" and isinstance(val, torch.Tensor) and val.dtype.is_complex:
            obstacles.add(
                f"complex numbers ({key_of(n.target)})", place(n), "compute with the real and imaginary parts"
            )


def _explain(e, dynamic, modules):
    """torch.export's refusal in one sentence with the user's line: (what, where, fix)."""
    name, text = type(e).__name__, str(e).strip()
    first = text.split("\n")[0] if text else name
    where = place_of_error(e, modules)
    if any(f.f_locals.get("batch_sizes") is not None for f, _ in traceback.walk_tb(e.__traceback__)):
        return ("packed sequences: their sizes depend on values", where,
                "run the recurrent layer on the padded batch, and leave the padding out of the loss")
    if "DynamicOutputShape" in name:
        return (
            f"the size of a result depends on the values of tensors: {first}",
            where,
            "compute it with masks, or outside of forward",
        )
    if "DataDependent" in name or "data-dependent" in text.lower():
        return (f"control flow that depends on the values of tensors: {first}", where,
                "replace the branch by torch.where, or decide it outside of forward")
    if "Constraint" in name or "dynamic" in first.lower():
        return f"the batch size cannot be left open: {first}", where, "from_torch(..., dynamic_batch=False)"
    if "UnsupportedOperator" in name:
        return f"the operator {first} cannot be traced", where, INSTEAD
    if "functorch" in text or "fake tensor in the exported program" in text:
        return (
            "forward differentiates by itself (autograd.grad, torch.func), or puts another tensor in the place of a "
            "stored one (x.data = ...)",
            where,
            "leave derivatives to the loss's own gradient; compute with the tensor instead of storing it",
        )
    fix = "see whether it goes with a fixed batch size: from_torch(..., dynamic_batch=False)" if dynamic else INSTEAD
    return f"torch.export refuses the module ({name}): {first}", where, fix


def _functional(program):
    if in_place_ops.walkable(program.graph_module):
        return program
    _mark_no_grad(program.graph_module)
    program = versions.functional(program)
    for _ in range(6):  # operators outside of our table, by simpler ones as long as there are some
        table = {}
        for n in program.graph_module.graph.nodes:
            if (
                n.op == "call_function"
                and isinstance(n.target, torch._ops.OpOverload)
                and key_of(n.target) not in TABLE
            ):
                f = versions.decomposition(n.target)
                if f is not None:
                    table[n.target] = f
        if not table:
            return program
        program = versions.functional(program, table)
    return program


def _mark_no_grad(gm):
    """A detach behind every result of a region without gradients: the functional form forgets the region."""
    for n in list(gm.graph.nodes):
        if n.op != "call_function" or not versions.is_grad_mode_region(n.target) or n.args[0]:
            continue
        for user in list(n.users):
            val = user.meta.get("val")
            if not isinstance(val, torch.Tensor) or not val.dtype.is_floating_point:
                continue
            with gm.graph.inserting_after(user):
                stop = gm.graph.call_function(torch.ops.aten.detach.default, (user,))
            stop.meta.update(user.meta)
            user.replace_all_uses_with(stop, delete_user_cb=lambda u, s=stop: u is not s)
    gm.recompile()
