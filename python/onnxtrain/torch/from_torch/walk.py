"""The walk over an FX graph: each node is lowered by the table; what has no lowering is collected as an obstacle."""

import torch
from torch.export.graph_signature import InputKind, OutputKind

from ...converters.obstacles import INSTEAD
from ..shared import versions
from . import in_place_ops
from .emit import Value, static
from .lower import (
    COMPLEX,
    TABLE,
    Args,
    Context,
    Unsupported,
    complex_pairs,
    is_complex,
    key_of,
)
from .obstacles import fix_of, place


class Walk:
    def __init__(self, emitter, state, training, obstacles):
        self.e, self.state, self.training, self.obstacles = emitter, state, training, obstacles
        self.env, self.changed, self.aliases = {}, {}, in_place_ops.Aliases()
        # an open size -> the first input that has it, and where: forward must not ask a target for the batch
        self.sizes = {}

    def run(self, graph, input_values):
        """Lowers the graph; gives (user outputs, {buffer name: new value}). `input_values`: Values of the flat
        inputs."""
        self.places, self.inputs = graph.places, {}
        specs = {s.arg.name: s for s in graph.signature.input_specs if hasattr(s.arg, "name")}
        users = iter(input_values)
        for n in graph.graph.nodes:
            if n.op == "placeholder":
                self.env[n] = self._placeholder(n, specs[n.name], users, graph.program)
            elif n.op == "get_attr":
                self.env[n] = getattr(graph.program.graph_module, n.target, None)
            elif n.op == "call_function":
                self._call(n, graph.program.graph_module)
            elif n.op == "output":
                return self._outputs(n, graph.signature)
        raise AssertionError("a graph without output")

    def _placeholder(self, n, spec, users, program):
        val = n.meta.get("val")
        if spec.kind == InputKind.USER_INPUT:
            v = next(users)
            self.inputs[n.name] = v.name
            if not isinstance(val, torch.Tensor):
                return v
            value = Value(v.name, val.dtype, list(val.shape))
            for k, size in enumerate(val.shape):
                if static(size) is None:
                    self.sizes.setdefault(str(size), (value, k))
            return value
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
            return self.state.value(spec.target)
        if spec.kind == InputKind.CONSTANT_TENSOR:
            tensor = program.constants[spec.target]
            known = self.state.by_identity(tensor)
            if known is None and tensor.dtype.is_complex:
                return complex_pairs.constant(self.e, tensor)
            return known if known is not None else self.e.const(tensor)
        if spec.kind != InputKind.TOKEN:  # it only orders assertions
            self.obstacles.add(f"an input of kind {spec.kind} ({spec.target})")
        return None

    def _region(self, n, gm):
        """A part under torch.no_grad() (or enable_grad) that torch.export keeps as a graph of its own."""
        enabled, sub = n.args[0], getattr(gm, n.args[1].target)
        inner = Walk(self.e, self.state, self.training, self.obstacles)
        inner.sizes = self.sizes
        given = iter(n.args[2:])
        for k in sub.graph.nodes:
            if k.op == "placeholder":
                a = next(given)
                inner.env[k] = self.env[a] if isinstance(a, torch.fx.Node) else a
            elif k.op == "get_attr":
                inner.env[k] = getattr(sub, k.target, None)
            elif k.op == "call_function":
                inner._call(k, sub)
            elif k.op == "output":
                out = [inner.env[a] if isinstance(a, torch.fx.Node) else a for a in k.args[0]]
        if not enabled:
            self.e.hint = n.name
            stop = Context(self.e, n, self.training)
            out = [stop.detach(v) if isinstance(v, Value) else v for v in out]
        self.env[n] = out

    def _call(self, n, gm):
        if versions.is_grad_mode_region(n.target):
            self._region(n, gm)
            return
        key = in_place_ops.plain_name(n.target) or key_of(n.target)
        if key == "_operator.getitem":
            source, index = self.env[n.args[0]], n.args[1]
            value = source[index] if isinstance(source, (tuple, list)) and index < len(source) else None
            self.env[n] = self._typed(n, value) if value is not None else None
            return
        changed = in_place_ops.changed_arguments(n)
        if key.endswith("with_effects") and len(n.args) > 1:
            if "assert" in str(n.args[1]):  # checks of values: nothing to compute
                self.env[n] = [None] * 2
                return
            key = key_of(n.args[1])
        f = TABLE.get(key)
        if self._of_pairs(n) and key not in complex_pairs.MAKERS:
            f = COMPLEX.get(key)
        if f is None:
            of = " of complex numbers" if self._of_pairs(n) else ""
            self.obstacles.add(f"the operator {key}{of} has no form in ONNX here", place(n), INSTEAD)
            self.env[n] = self._typed(n, self._placeholder_result(n))
            return
        self.e.hint = n.name if not self.training else n.name + "_t"
        try:
            args = torch.fx.node.map_arg(n.args, self._get)
            kwargs = torch.fx.node.map_arg(n.kwargs, self._get)
            if key == "aten.sym_size":
                args = self.sizes.get(str(n.meta.get("val")), args)
            result = f(Context(self.e, n, self.training), Args(n.target, args, kwargs))
        except Unsupported as e:
            reason, _, other = str(e).partition("; use ")
            self.obstacles.add(f"{key}: {reason}", place(n), f"use {other}" if other else fix_of(reason))
            result, changed = self._placeholder_result(n), []
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as e:
            self.obstacles.add(
                f"{key} in a form that onnxtrain does not know ({type(e).__name__}: {e})", place(n), INSTEAD
            )
            result, changed = self._placeholder_result(n), []
        if key == "aten.batch_norm" and isinstance(result, tuple):  # training: y and, last, the new running statistics
            for (_, node), value in zip(changed, result[3:]):
                self._change(node, value)
            result = result[0]
        self.env[n] = self._typed(n, result)
        if in_place_ops.plain_name(n.target) is not None:
            for _, node in changed:
                self._change(node, self.env[n])
                self.aliases.joined(n, node)

    def _of_pairs(self, n):
        """Whether an operator computes with complex numbers."""
        val = n.meta.get("val")
        given = [self.env.get(a) for a in n.all_input_nodes]
        return any(is_complex(v) for v in given) or isinstance(val, torch.Tensor) and val.dtype.is_complex

    def _change(self, node, value):
        """From here on `node` reads as `value`; of a buffer that is its value after the step."""
        for n in self.aliases.family(node):
            self.env[n] = Value(value.name, self.env[n].dtype, self.env[n].shape)
            if n.op == "placeholder":
                self.changed[n.name] = self.env[n]

    def _get(self, n):
        return self.env[n]

    def _placeholder_result(self, n):
        """Something to go on with after an obstacle, so that the others are found too."""
        val = n.meta.get("val")
        count = len(val) if isinstance(val, (tuple, list)) else 1
        made = [Value(self.e.claim("missing")) for _ in range(count)]
        return made if isinstance(val, (tuple, list)) else made[0]

    def _typed(self, n, result):
        val = n.meta.get("val")
        if isinstance(result, (tuple, list)):
            vals = val if isinstance(val, (tuple, list)) else [val] * len(result)
            return [self._one(r, v) for r, v in zip(result, vals)]
        if isinstance(val, (tuple, list)):
            val = val[0] if val else None
        return self._one(result, val)

    def _one(self, r, val):
        if not isinstance(r, Value):
            return r
        if isinstance(val, torch.Tensor):
            if r.dtype is not None and r.dtype != val.dtype:
                r = self.e.cast(r, val.dtype)
            return Value(r.name, val.dtype, list(val.shape))
        if isinstance(val, (torch.SymInt, int)):
            return Value(r.name, torch.int64, [])
        if isinstance(val, (torch.SymFloat, float)):
            return Value(r.name, torch.float64, [])
        if isinstance(val, (torch.SymBool, bool)):
            return Value(r.name, torch.bool, [])
        return r

    def _outputs(self, n, signature):
        flat = [self.env[a] if isinstance(a, torch.fx.Node) else a for a in n.args[0]]
        outputs, buffers = [], {}
        if any(is_complex(v) for v in flat):
            self.obstacles.add("the module returns complex numbers", "", "return torch.view_as_real(y)")
        for value, spec in zip(flat, signature.output_specs):
            if spec.kind == OutputKind.USER_OUTPUT:
                outputs.append(value)
            elif spec.kind == OutputKind.BUFFER_MUTATION:
                buffers[self.state.name_of(spec.target)] = value
            elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                self._refuse_input(spec.target)
            elif spec.kind != OutputKind.TOKEN:
                self._parameter(str(spec.target), value, buffers, signature)
        for spec in signature.input_specs:
            value = self.changed.get(getattr(spec.arg, "name", None))
            if value is None:
                continue
            if spec.kind == InputKind.BUFFER:
                buffers[self.state.name_of(spec.target)] = value
            elif spec.kind == InputKind.PARAMETER:
                self._parameter(spec.target, value, buffers, signature)
            elif spec.kind == InputKind.USER_INPUT:
                self._refuse_input(spec.arg.name)
        return outputs, buffers

    def _refuse_input(self, name):
        self.obstacles.add(
            f"forward changes the input '{self.inputs.get(name, name)}' in place",
            self.places.get(name, ""),
            "work on a copy: x = x.clone()",
        )

    def _parameter(self, name, value, buffers, signature):
        """One that forward writes to: a frozen one is state like a buffer (an average of other weights)."""
        stored = self.state.name_of(name)
        if stored in self.state.frozen:
            buffers[stored] = value
            self.state.written.add(stored)
            return
        at = next((s.arg.name for s in signature.input_specs if s.target == name), "")
        self.obstacles.add(
            f"forward changes the parameter '{name.removeprefix('module.')}' in place",
            self.places.get(at, ""),
            "compute with a changed copy, or keep the value in a buffer",
        )
