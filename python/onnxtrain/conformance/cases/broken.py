"""Files that must be refused: one per rule C1-C20 and ruling G4 (docs/standard.md), each one change away from
a good one."""

import numpy as np
import onnx

from ..case import Case
from ..files import TRAINING, Section, training_file
from ..networks import F4

CATEGORY = "files to refuse"
MAIN = "main (float[2] x) => (float[2] y) { y = Mul(x, w) }"
STEP = """step (float[2] t) => (float loss, float[2] w_new) { d = Sub(y, t) q = Mul(d, d) loss =
    ReduceSum<keepdims = 0>(q)
    g = training.Gradient<xs = ["w"], zs = ["x", "t"], y = "loss">(w, x, t) s = Mul(g, R) w_new = Sub(w, s) }"""
INIT = "init () => (float[2] w0) { w1 = Constant<value_floats = [1.0, 2.0]>() w0 = Neg(w1) }"


def good(initialization=False):
    return onnx.ModelProto.FromString(
        training_file(
            MAIN,
            {"w": F4([1, 2])},
            Section(STEP, {"w": "w_new"}, {"R": F4(0.125)}, *((INIT, {"w": "w0"}) if initialization else ())),
        )
    )


def parts(m):
    info = m.training_info[0]
    gradient = next(n for n in info.algorithm.node if n.op_type == "Gradient")
    return info, info.algorithm, gradient


def attribute(node, name):
    return next(a for a in node.attribute if a.name == name)


def rename(items, old, new):
    for k, v in enumerate(items):
        if v == old:
            items[k] = new


def adam(m, drop):
    info, a, _ = parts(m)
    a.initializer.extend(
        [
            onnx.numpy_helper.from_array(v, n)
            for n, v in (("T", np.int64(1)), ("V", np.zeros(2, F4)), ("H", np.zeros(2, F4)))
        ]
    )
    del a.node[-2:]
    inputs = ["R", "T", "w", "g", "V", "H"][: 6 - drop]
    a.node.add(op_type="Adam", domain=TRAINING, input=inputs, output=["w_new", "V_new", "H_new"][: 3 - drop])


def scalars(m, rate, count):
    adam(m, 0)
    a = parts(m)[1]
    for i in range(len(a.initializer)):
        if a.initializer[i].name == "R":
            a.initializer[i].CopyFrom(onnx.numpy_helper.from_array(rate, "R"))
        if a.initializer[i].name == "T":
            a.initializer[i].CopyFrom(onnx.numpy_helper.from_array(count, "T"))


def c1(m):
    m.ir_version = 6


def c2(m):
    del m.opset_import[1]


def c3_unknown_tensor(m):
    rename(parts(m)[1].node[0].input, "t", "nothing")


def c3_defined_twice(m):
    parts(m)[1].node[-2].output[0] = "q"
    rename(parts(m)[1].node[-1].input, "s", "q")


def c3_unknown_operator(m):
    parts(m)[1].node[0].op_type = "Substract"


def c3_types(m):
    parts(m)[1].input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64


def c4(m):
    m.graph.node[0].input[1] = "v"


def c5_input(m):
    m.training_info[0].initialization.input.add().CopyFrom(m.graph.input[0])


def c5_outside(m):
    rename(m.training_info[0].initialization.node[1].input, "w1", "w")


def c6(m):
    m.training_info[0].ClearField("initialization")


def c7(m):
    m.training_info[0].update_binding[0].key = "x"


def c8(m):
    m.training_info[0].initialization_binding[0].value = "w1"


def c9(m):
    m.training_info[0].update_binding[0].value = "s"


def c10(m):
    m.training_info[0].update_binding.add(key="w", value="w_new")


def c10_initial(m):
    m.training_info[0].initialization_binding.add(key="w", value="w0")


def c12_shape(m):
    m.training_info[0].update_binding[0].value = "loss"


def c13(m):
    del parts(m)[2].input[-1]


def c14(m):
    parts(m)[2].output.append("g2")


def c15_y(m):
    attribute(parts(m)[2], "y").s = b"s"


def c15_xs(m):
    attribute(parts(m)[2], "xs").strings[0] = b"nothing"


def c16(m):
    attribute(parts(m)[2], "zs").strings[1] = b"y"
    rename(parts(m)[2].input, "t", "y")


def c18_inputs(m):
    adam(m, 2)


def c18_rate(m):
    scalars(m, F4([0.1, 0.2]), np.int64(1))


def c18_count(m):
    scalars(m, F4(0.1), F4(1))


def c19(m):
    parts(m)[2].op_type = "Gradients"


def c19_optimizer(m):
    adam(m, 0)
    parts(m)[1].node[-1].op_type = "AdamW"


def c12_type(m):
    a = parts(m)[1]
    a.node[-1].output[0] = "w_float"
    a.node.add(op_type="Cast", input=["w_float"], output=["w_new"]).attribute.add(
        name="to", i=onnx.TensorProto.DOUBLE, type=onnx.AttributeProto.INT
    )
    a.output[1].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE


def c17(m):
    a, g = parts(m)[1:]
    a.initializer.append(onnx.numpy_helper.from_array(np.int64([1, 2]), "n"))
    attribute(g, "xs").strings.append(b"n")
    g.input.insert(1, "n")


def c17_path(m):
    a = parts(m)[1]
    a.node[0].output[0] = "d0"
    a.node.insert(1, onnx.helper.make_node("Sigmoid", ["d0"], ["d1"]))
    a.node.insert(2, onnx.helper.make_node("Bernoulli", ["d1"], ["d"]))


def c20_sparse(m):
    values = onnx.numpy_helper.from_array(F4([1]), "v")
    m.graph.sparse_initializer.add(values=values, indices=onnx.numpy_helper.from_array(np.int64([0])), dims=[2])
    m.training_info[0].update_binding.add(key="v", value="w_new")


def c20_outside(m):
    t = m.graph.initializer[0]
    t.ClearField("raw_data")
    t.data_location = onnx.TensorProto.EXTERNAL
    t.external_data.add(key="location", value="there-is-no-such-file.bin")


def g4(m):
    """A second section with an initializer of the same name."""
    second = m.training_info.add()
    a = second.algorithm
    a.CopyFrom(onnx.parser.parse_graph("step2 () => (float n2) { n2 = Add(R, R) }"))
    a.initializer.append(onnx.numpy_helper.from_array(F4(3), "R"))
    second.update_binding.add(key="R", value="n2")


ALL = [
    c1,
    c2,
    c3_unknown_tensor,
    c3_defined_twice,
    c3_unknown_operator,
    c3_types,
    c4,
    c5_input,
    c5_outside,
    c6,
    c7,
    c8,
    c9,
    c10,
    c10_initial,
    c12_shape,
    c12_type,
    c13,
    c14,
    c15_y,
    c15_xs,
    c16,
    c17,
    c17_path,
    c18_inputs,
    c18_rate,
    c18_count,
    c19,
    c19_optimizer,
    c20_sparse,
    c20_outside,
    g4,
]
ABOUT = {
    "c1": "training_info in IR version 6",
    "c2": "the training domain is not imported",
    "c4": "the main graph is broken",
    "c6": "an initialization_binding without an initialization",
    "c7": "a binding of an input",
    "c8": "start value from a tensor inside the initialization",
    "c9": "new value from a tensor inside the algorithm",
    "c10": "a key twice in update_binding",
    "c13": "Gradient has fewer inputs than names",
    "c14": "Gradient has more outputs than xs",
    "c16": "a name in zs depends on another",
    "c17": "an integer tensor in xs",
    "c19": "Gradients instead of Gradient",
    "g4": "two sections with an initializer of the same name",
}


def cases():
    for change in ALL:
        name = change.__name__
        m = good(name[:2] in ("c5", "c6", "c8") or name == "c10_initial")
        change(m)
        rule = name.split("_")[0].upper()
        yield Case(
            f"refuse_{name}",
            CATEGORY,
            ABOUT.get(name, name.partition("_")[2].replace("_", " ")),
            m.SerializeToString(deterministic=True),
            "refuse",
            rule,
            [{"x": F4([0.5, 1]), "t": F4([1, 1])}],
            [{}],
            [{}],
        )
