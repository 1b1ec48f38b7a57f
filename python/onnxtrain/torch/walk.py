"""The walk over an FX graph: each node is lowered by the table; what has no lowering is collected as an obstacle."""

import torch
from torch.export.graph_signature import InputKind, OutputKind

from .emit import Value
from .lower import TABLE, Args, Context, Unsupported, key_of
from .obstacles import place


class Walk:
    def __init__(self, emitter, state, training, obstacles):
        self.e, self.state, self.training, self.obstacles = emitter, state, training, obstacles
        self.env = {}

    def run(self, graph, input_values):
        """Lowers the graph; gives (user outputs, {buffer name: new value}). `input_values`: Values of the flat inputs."""
        specs = {s.arg.name: s for s in graph.signature.input_specs if hasattr(s.arg, "name")}
        users = iter(input_values)
        for n in graph.graph.nodes:
            if n.op == "placeholder":
                self.env[n] = self._placeholder(n, specs[n.name], users, graph.program)
            elif n.op == "get_attr":
                self.env[n] = getattr(graph.program.graph_module, n.target, None)
            elif n.op == "call_function":
                self._call(n)
            elif n.op == "output":
                return self._outputs(n, graph.signature)
        raise AssertionError("a graph without output")

    def _placeholder(self, n, spec, users, program):
        val = n.meta.get("val")
        if spec.kind == InputKind.USER_INPUT:
            v = next(users)
            return Value(v.name, val.dtype, list(val.shape)) if isinstance(val, torch.Tensor) else v
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
            return self.state.value(spec.target)
        if spec.kind == InputKind.CONSTANT_TENSOR:
            tensor = program.constants[spec.target]
            known = self.state.by_identity(tensor)
            return known if known is not None else self.e.const(tensor)
        self.obstacles.add(f"an input of kind {spec.kind} ({spec.target})")
        return None

    def _call(self, n):
        key = key_of(n.target)
        if key == "_operator.getitem":
            source, index = self.env[n.args[0]], n.args[1]
            value = source[index] if isinstance(source, (tuple, list)) and index < len(source) else None
            self.env[n] = self._typed(n, value) if value is not None else None
            return
        f = TABLE.get(key)
        if f is None:
            self.obstacles.add(f"the operator {key} has no form in ONNX here", place(n))
            self.env[n] = self._placeholder_result(n)
            return
        self.e.hint = n.name if not self.training else n.name + "_t"
        try:
            args = torch.fx.node.map_arg(n.args, self._get)
            kwargs = torch.fx.node.map_arg(n.kwargs, self._get)
            result = f(Context(self.e, n, self.training), Args(n.target, args, kwargs))
        except Unsupported as e:
            self.obstacles.add(f"{key}: {e}", place(n))
            result = self._placeholder_result(n)
        self.env[n] = self._typed(n, result)

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
        for value, spec in zip(flat, signature.output_specs):
            if spec.kind == OutputKind.USER_OUTPUT:
                outputs.append(value)
            elif spec.kind == OutputKind.BUFFER_MUTATION:
                buffers[self.state.name_of(spec.target)] = value
            elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                self.obstacles.add(f"forward changes its input '{spec.target}' in place", fix="work on a copy: x = x.clone()")
            else:
                self.obstacles.add(f"forward changes the parameter '{spec.target}' in place",
                                   fix="compute with a changed copy, or keep the value in a buffer")
        return outputs, buffers
