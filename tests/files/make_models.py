"""Makes the small models of this folder (round-trip test) and the seeds of the loader's fuzzer.

Run by developers when a case is added: .venv/bin/python tests/files/make_models.py
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

HERE = pathlib.Path(__file__).parent
SEEDS = HERE.parent / "fuzz" / "load_model_fuzz"

TEXTS = {
    "conv_if_function": """
        <ir_version: 10, opset_import: ["" : 20, "my" : 1]>
        g (bool c, float[N,3,8,8] x, float[4,3,3,3] w) => (float[N,256] y, float[N,4,8,8] z)
        <int64[2] s = {0, -1}> {
            a = Conv <strides = [1,1], pads = [1,1,1,1], group = 1> (x, w)
            y = Reshape (a, s)
            d = my.f <k = 1> (a)
            z = If (c) <
                then_branch = t () => (float[N,4,8,8] p) { p = Relu (d) },
                else_branch = e () => (float[N,4,8,8] q) { q = Identity (d) }>
        }
        <domain: "my", opset_import: ["" : 20]>
        f <k> (u) => (v) { v = Softmax <axis: int = @k> (u) }""",
    "loop_sequence": """
        <ir_version: 8, opset_import: ["" : 16]>
        g (int64 n, bool c, float[2] x) => (float[2] y, float[M,2] ys, float[4] u) {
            y, ys = Loop (n, c, x) <body = b (int64 i, bool ci, float[2] v) =>
                (bool co, float[2] vo, float[2] so)
                { co = Identity (ci) vo = Add (v, x) so = Mul (v, v) }>
            s = SequenceConstruct (x, x)
            u = ConcatFromSequence <axis = 0> (s)
        }""",
    "old_broadcast": """
        <ir_version: 3, opset_import: ["" : 6]>
        g (float[2,3,4,5] x, float[3] b) => (float[2,3,4,5] y)
        { y = Add <broadcast = 1, axis = 1> (x, b) }""",
    "recurrent_quantized": """
        <ir_version: 9, opset_import: ["" : 19]>
        g (float[1,2,5] x, float[1,8,5] w, float[1,8,2] r) => (float[1,1,2,2] y, int8[1,2,5] q) {
            y, h = LSTM <hidden_size = 2> (x, w, r)
            sc = Constant <value_float = 0.1> ()
            zp = Constant <value = int8 {0}> ()
            q = QuantizeLinear (x, sc, zp)
        }""",
    "text_strings": """
        <ir_version: 10, opset_import: ["" : 20, "ai.onnx.ml" : 3]>
        g (string[N] s) => (string[N] t, int64[N] k) {
            c = Constant <value_strings = ["_x"]> ()
            t = StringConcat (s, c)
            k = ai.onnx.ml.LabelEncoder <keys_strings = ["a","b"], values_int64s = [1,2]> (s)
        }""",
}


def training() -> onnx.ModelProto:
    """y = tanh(x w), mean squared error, Momentum; with initialization and a counter."""
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>
        main (float[N,2] x) => (float[N,3] y) <float[2,3] w = {1,2,3,4,5,6}> {
            h = MatMul (x, w)
            y = Tanh (h)
        }""")
    step = model.training_info.add()
    step.algorithm.CopyFrom(parser.parse_graph("""
        step (float[N,3] t) => (float loss, float[2,3] w_new, float[2,3] v_new, int64 n_new)
        <float rate = {0.1}, int64 n = {0}, int64 one = {1}, float[2,3] v = {0,0,0,0,0,0},
         float[2,3] g> {
            d = Sub (y, t)
            q = Mul (d, d)
            loss = ReduceMean <keepdims = 0> (q)
            g = ai.onnx.preview.training.Gradient
                <xs = ["w"], zs = ["x", "t"], y = "loss"> (w, x, t)
            w_new, v_new = ai.onnx.preview.training.Momentum
                <alpha = 0.9, beta = 1.0, mode = "standard", norm_coefficient = 0.0>
                (rate, n, w, g, v)
            n_new = Add (n, one)
        }"""))
    step.initialization.CopyFrom(
        parser.parse_graph("init () => (float[2,3] w0) { w0 = RandomNormal <shape = [2,3]> () }"))
    for key, value in (("w", "w_new"), ("v", "v_new"), ("n", "n_new")):
        step.update_binding.add(key=key, value=value)
    step.initialization_binding.add(key="w", value="w0")
    model.metadata_props.add(key="note", value="kept")
    return model


def element_types() -> onnx.ModelProto:
    """One initializer of every element type, typed fields and raw data, and a sparse one."""
    graph = helper.make_graph([], "types", [], [])
    for t in TensorProto.DataType.values():
        if t == TensorProto.UNDEFINED or t > TensorProto.INT2:
            continue
        name = TensorProto.DataType.Name(t).lower()
        values = ["a", "b", "c"] if t == TensorProto.STRING else [0, 1, 1]
        graph.initializer.append(helper.make_tensor(f"{name}_fields", t, [3], values))
        if t != TensorProto.STRING:
            array = numpy_helper.to_array(graph.initializer[-1])
            graph.initializer.append(numpy_helper.from_array(array, f"{name}_raw"))
    values = helper.make_tensor("sparse", TensorProto.FLOAT, [2], [5.0, 6.0])
    indices = helper.make_tensor("", TensorProto.INT64, [2], [1, 5])
    graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
    graph.node.append(helper.make_node("Identity", ["float_raw"], ["y"]))
    graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, [3]))
    return helper.make_model(graph, ir_version=13, opset_imports=[helper.make_opsetid("", 25)])


def nan_attribute() -> onnx.ModelProto:
    node = helper.make_node("Constant", [], ["y"],
                            value=numpy_helper.from_array(np.array([np.nan, 1], np.float32)))
    graph = helper.make_graph([node], "nan", [], [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def main() -> None:
    models = {name: parser.parse_model(text) for name, text in TEXTS.items()}
    models |= {"training": training(), "element_types": element_types(), "nan": nan_attribute()}
    SEEDS.mkdir(parents=True, exist_ok=True)
    for name, model in models.items():
        data = model.SerializeToString(deterministic=True)
        (HERE / f"{name}.onnx").write_bytes(data)
        (SEEDS / name).write_bytes(data)
        print(f"{name}: {len(data)} bytes")


if __name__ == "__main__":
    main()
