"""Small files that lie, loop or ask for too much: {name: bytes}, with the exit codes that are right.

A file that is wrong in itself must be refused when it is loaded (exit 3). A file that is valid but asks for
too much when it runs (`RUNS`) must be refused at the latest then.
"""

import onnx
from onnx import TensorProto as T
from onnx import helper as h

F = T.FLOAT


def model(nodes, inputs=(("x", F, [2, 3]),), outputs=(("y", F, None),), initializers=(), opset=21, ir=10, **more):
    def value(v):
        return h.make_tensor_value_info(v[0], v[1], v[2])

    graph = h.make_graph(list(nodes), "g", [value(v) for v in inputs], [value(v) for v in outputs], list(initializers))
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=ir, **more)


def ints(name, values, dims=None):
    return h.make_tensor(name, T.INT64, [len(values)] if dims is None else dims, values)


def one(op, extra=(), **attributes):
    """A model of one node on `x` and constants."""
    return model([h.make_node(op, ["x"] + [t.name for t in extra], ["y"], name="bad", **attributes)],
                 initializers=extra)


def image(op, shape, weight=None, extra=(), **attributes):
    names = ["x"]
    initializers = list(extra)
    if weight:
        initializers.insert(0, h.make_tensor("w", F, weight, [0.5] * _product(weight)))
    names += [t.name for t in initializers]
    return model([h.make_node(op, names, ["y"], name="bad", **attributes)], inputs=[("x", F, shape)],
                 initializers=initializers)


def _product(dims):
    n = 1
    for d in dims:
        n *= d
    return n


def lying_tensors():
    def with_tensor(edit):
        t = h.make_tensor("w", F, [2, 3], [1.0] * 6)
        m = model([h.make_node("Add", ["x", "w"], ["y"])], initializers=[t])
        edit(m.graph.initializer[0])
        return m

    def raw(t, data):
        t.ClearField("float_data")
        t.raw_data = data

    def dims(t, values):
        del t.dims[:]
        t.dims.extend(values)

    yield "tensor_short_raw", with_tensor(lambda t: raw(t, b"\0" * 20))
    yield "tensor_long_raw", with_tensor(lambda t: raw(t, b"\0" * 28))
    yield "tensor_odd_raw", with_tensor(lambda t: raw(t, b"\0" * 23))
    yield "tensor_short_field", with_tensor(lambda t: t.float_data.pop())
    yield "tensor_negative_dim", with_tensor(lambda t: dims(t, [-2, -3]))
    yield "tensor_huge_dim", with_tensor(lambda t: dims(t, [1 << 62, 4]))
    yield "tensor_overflow", with_tensor(lambda t: dims(t, [1 << 32, 1 << 32, 1 << 32]))
    yield "tensor_wraps_to_six", with_tensor(lambda t: dims(t, [3, (1 << 63) - 1, 2]))
    yield "tensor_rank_10000", with_tensor(lambda t: dims(t, [1] * 10000))
    yield "tensor_wrong_type", with_tensor(lambda t: setattr(t, "data_type", 9999))
    yield "tensor_undefined", with_tensor(lambda t: setattr(t, "data_type", 0))
    yield "tensor_string_in_float", with_tensor(lambda t: t.string_data.append(b"x"))


def external():
    def at(location, offset=None, length=None):
        t = T(name="w", data_type=F, dims=[2, 3], data_location=T.EXTERNAL)
        for key, value in (("location", location), ("offset", offset), ("length", length)):
            if value is not None:
                t.external_data.add(key=key, value=str(value))
        m = model([h.make_node("Add", ["x", "w"], ["y"])])
        m.graph.initializer.append(t)
        return m

    for name, where in {
        "absolute": "/etc/hostname",
        "parent": "../secret.bin",
        "deep_parent": "a/../../secret.bin",
        "device": "/dev/zero",
        "empty": "",
        "folder": ".",
        "nul": "a\0b",
        "missing": "not-there.bin",
        "link": "link.bin",
        "fifo": "fifo.bin",
    }.items():
        yield f"external_{name}", at(where)
    yield "external_offset_huge", at("data.bin", (1 << 63) - 1, 24)
    yield "external_offset_negative", at("data.bin", -8, 24)
    yield "external_length_huge", at("data.bin", 0, 1 << 62)
    yield "external_not_a_number", at("data.bin", "ten", 24)
    yield "external_past_end", at("data.bin", 16, 24)


def broken_graphs():
    n = h.make_node
    yield "cycle", model([n("Add", ["x", "b"], ["a"]), n("Relu", ["a"], ["b"]), n("Relu", ["b"], ["y"])])
    yield "self_cycle", model([n("Add", ["x", "y"], ["y"])])
    yield "order_behind_a_cycle", model([n("Relu", ["b"], ["y"]), n("Add", ["x", "b"], ["a"]), n("Relu", ["a"], ["b"])])
    yield "missing_input", model([n("Add", ["x", "nowhere"], ["y"])])
    yield "two_writers", model([n("Relu", ["x"], ["y"]), n("Abs", ["x"], ["y"])])
    yield "output_of_nobody", model([n("Relu", ["x"], ["z"])])
    yield "unknown_operator", model([n("NoSuchOperator", ["x"], ["y"])])
    yield "unknown_domain", model([n("Relu", ["x"], ["y"], domain="com.nowhere")])
    yield "too_many_inputs", model([n("Relu", ["x", "x", "x"], ["y"])])
    yield "no_inputs", model([n("Add", [], ["y"])])
    yield "wrong_attribute_type", model([n("Softmax", ["x"], ["y"], axis=1.5)])
    yield "unknown_attribute", model([n("Relu", ["x"], ["y"], colour=3)])
    yield "opset_zero", model([n("Relu", ["x"], ["y"])], opset=0)
    yield "opset_huge", model([n("Relu", ["x"], ["y"])], opset=1 << 40)
    yield "opset_negative", model([n("Relu", ["x"], ["y"])], opset=-3)
    yield "ir_huge", model([n("Relu", ["x"], ["y"])], ir=1 << 40)
    m = model([n("Relu", ["x"], ["y"])])
    del m.opset_import[:]
    yield "no_opset", m
    yield "type_error", model([n("And", ["x", "x"], ["y"])])
    yield "shape_error", model([n("MatMul", ["x", "x"], ["y"])])


def deep():
    inner = h.make_graph([h.make_node("Relu", ["x"], ["o0"])], "g0", [], [h.make_tensor_value_info("o0", F, None)])
    for i in range(1, 24):  # python's own serializer goes no deeper; raw_bytes() does
        other = h.make_graph([h.make_node("Relu", ["x"], [f"e{i}"])], "e", [],
                             [h.make_tensor_value_info(f"e{i}", F, None)])
        node = h.make_node("If", ["c"], [f"o{i}"], then_branch=inner, else_branch=other)
        inner = h.make_graph([node], f"g{i}", [], [h.make_tensor_value_info(f"o{i}", F, None)])
    yield "if_depth_24", model([node], inputs=[("x", F, [2]), ("c", T.BOOL, [])], outputs=[("o23", F, None)])

    def function(name, calls, body_op="Identity"):
        nodes = [h.make_node(c, ["a" if i == 0 else f"t{i}"], [f"t{i + 1}"], domain="l") for i, c in enumerate(calls)]
        if not nodes:
            nodes = [h.make_node(body_op, ["a"], ["t1"])]
        return h.make_function("l", name, ["a"], [nodes[-1].output[0]], nodes,
                               [h.make_opsetid("", 21), h.make_opsetid("l", 1)])

    def with_functions(functions, call):
        m = model([h.make_node(call, ["x"], ["y"], domain="l")])
        m.opset_import.append(h.make_opsetid("l", 1))
        m.functions.extend(functions)
        return m

    yield "function_recursion", with_functions([function("A", ["A"])], "A")
    yield "function_mutual", with_functions([function("A", ["B"]), function("B", ["A"])], "A")
    yield "function_laughs", with_functions([function("F0", [])]
                                            + [function(f"F{i}", [f"F{i - 1}"] * 10) for i in range(1, 12)], "F11")


def attributes():
    yield "conv_stride_zero", image("Conv", [1, 2, 5, 5], [2, 2, 3, 3], strides=[0, 1])
    yield "conv_stride_negative", image("Conv", [1, 2, 5, 5], [2, 2, 3, 3], strides=[-1, 1])
    yield "conv_dilation_zero", image("Conv", [1, 2, 5, 5], [2, 2, 3, 3], dilations=[0, 0])
    yield "conv_group_zero", image("Conv", [1, 2, 5, 5], [2, 2, 3, 3], group=0)
    yield "conv_group_negative", image("Conv", [1, 2, 5, 5], [2, 2, 3, 3], group=-1)
    yield "conv_group_odd", image("Conv", [1, 2, 5, 5], [2, 2, 3, 3], group=7)
    yield "conv_pads_short", image("Conv", [1, 2, 5, 5], [2, 2, 3, 3], pads=[1])
    yield "conv_pads_negative", image("Conv", [1, 2, 5, 5], [2, 2, 3, 3], pads=[-9, 0, 0, 0])
    yield "conv_pads_huge", image("Conv", [1, 2, 5, 5], [2, 2, 3, 3], pads=[1 << 62, 0, 1 << 62, 0])
    yield "conv_kernel_lies", image("Conv", [1, 2, 5, 5], [2, 2, 3, 3], kernel_shape=[5, 5])
    yield "pool_kernel_zero", image("MaxPool", [1, 2, 5, 5], kernel_shape=[0, 0])
    yield "pool_kernel_huge", image("MaxPool", [1, 2, 5, 5], kernel_shape=[1 << 40, 1])
    yield "pool_stride_zero", image("AveragePool", [1, 2, 5, 5], kernel_shape=[2, 2], strides=[0, 0])
    yield "lppool_stride_zero", image("LpPool", [1, 2, 5, 5], kernel_shape=[2, 2], strides=[0, 0])
    yield "conv_transpose_output_padding", image("ConvTranspose", [1, 2, 5, 5], [2, 2, 3, 3],
                                                 output_padding=[1 << 40, 0])
    yield "transpose_twice", one("Transpose", perm=[0, 0])
    yield "transpose_long", one("Transpose", perm=[0, 1, 2])
    yield "transpose_negative", one("Transpose", perm=[-1, 0])
    yield "concat_axis", one("Concat", axis=1 << 40)
    yield "softmax_axis", one("Softmax", axis=99)
    yield "flatten_axis", one("Flatten", axis=-99)
    yield "gather_axis", one("Gather", [ints("i", [0])], axis=7)
    yield "depth_to_space_zero", image("DepthToSpace", [1, 4, 2, 2], blocksize=0)
    yield "space_to_depth_negative", image("SpaceToDepth", [1, 4, 2, 2], blocksize=-2)
    yield "lrn_size", image("LRN", [1, 4, 2, 2], size=-5)
    yield "einsum_nonsense", one("Einsum", equation="ij,,->->k")
    yield "split_mismatch", model([h.make_node("Split", ["x", "s"], ["y", "z"], axis=1)],
                                  initializers=[ints("s", [1, 9])])
    yield "split_parts_huge", one("Split", num_outputs=1 << 40)
    yield "cast_to_nothing", one("Cast", to=12345)
    yield "group_norm_zero", image("GroupNormalization", [1, 4, 2, 2],
                                   extra=[h.make_tensor(n, F, [4], [1.0] * 4) for n in "sb"], num_groups=0)
    lstm = [h.make_tensor("w", F, [1, 8, 3], [0.1] * 24), h.make_tensor("r", F, [1, 8, 2], [0.1] * 16)]
    for size in (0, -1, 1 << 40):
        yield f"lstm_hidden_{size}", image("LSTM", [2, 1, 3], extra=lstm, hidden_size=size)
    yield "lstm_direction", image("LSTM", [2, 1, 3], extra=lstm, hidden_size=2, direction="sideways")
    yield "lstm_activation", image("LSTM", [2, 1, 3], extra=lstm, hidden_size=2, activations=["Nope"] * 3)
    yield "resize_mode", image("Resize", [1, 1, 2, 2], extra=[h.make_tensor("r", F, [0], []),
                                                              h.make_tensor("s", F, [4], [1, 1, 2, 2])], mode="magic")


RUNS = {}


def too_much():
    """Valid files that ask for more than any machine has."""
    big = 1 << 40

    def fill(shape):
        return model([h.make_node("ConstantOfShape", ["s"], ["y"])], inputs=[], initializers=[ints("s", shape)])

    yield "fill_huge", fill([big, big])
    yield "fill_large", fill([1 << 38])
    yield "fill_negative", fill([-4])
    yield "expand_huge", one("Expand", [ints("s", [1 << 38, 2, 3])])
    yield "tile_huge", one("Tile", [ints("s", [1 << 38, 1])])
    yield "tile_overflow", one("Tile", [ints("s", [1 << 62, 1 << 62])])
    yield "tile_negative", one("Tile", [ints("s", [-1, 1])])
    yield "pad_huge", one("Pad", [ints("s", [1 << 38, 0, 0, 0])])
    yield "pad_overflow", one("Pad", [ints("s", [(1 << 63) - 1, 0, (1 << 63) - 1, 0])])
    yield "pad_removes_all", one("Pad", [ints("s", [-9, 0, 0, 0])])
    yield "reshape_wrong", one("Reshape", [ints("s", [7])])
    yield "reshape_two_unknown", one("Reshape", [ints("s", [-1, -1])])
    yield "reshape_minus_two", one("Reshape", [ints("s", [-2, 3])])
    yield "reshape_overflow", one("Reshape", [ints("s", [1 << 32, 1 << 32, 6])])
    yield "resize_huge", image("Resize", [1, 1, 2, 2],
                               extra=[h.make_tensor("r", F, [0], []), h.make_tensor("s", F, [4], [1, 1, 1e15, 1])])
    yield "resize_nan", image("Resize", [1, 1, 2, 2], extra=[h.make_tensor("r", F, [0], []),
                                                             h.make_tensor("s", F, [4], [1, 1, float("nan"), 1])])
    yield "slice_step_zero", one("Slice", [ints("b", [0]), ints("e", [2]), ints("a", [0]), ints("s", [0])])
    yield "slice_axis", one("Slice", [ints("b", [0]), ints("e", [2]), ints("a", [9])])
    yield "squeeze_not_one", one("Squeeze", [ints("a", [1])])
    yield "unsqueeze_far", one("Unsqueeze", [ints("a", [99])])
    yield "topk_more_than_there", one("TopK", [ints("k", [99])])
    yield "gather_outside", one("Gather", [ints("i", [5])])
    yield "gather_far_outside", one("Gather", [ints("i", [-(1 << 62)])])
    yield "gather_nd_outside", one("GatherND", [ints("i", [5, 5], [1, 2])])
    yield "scatter_nd_outside", one("ScatterND", [ints("i", [9], [1, 1]), h.make_tensor("u", F, [1, 3], [0.0] * 3)])
    yield "scatter_elements_outside", one("ScatterElements",
                                          [ints("i", [9], [1, 1]), h.make_tensor("u", F, [1, 1], [0.0])])
    yield "onehot_huge", model([h.make_node("OneHot", ["x", "d", "v"], ["y"])], inputs=[("x", T.INT64, [2])],
                               initializers=[ints("d", [1 << 50]), h.make_tensor("v", F, [2], [0, 1])])
    yield "range_huge", model([h.make_node("Range", ["a", "b", "c"], ["y"])], inputs=[], outputs=[("y", T.INT64, None)],
                              initializers=[ints("a", [0], []), ints("b", [1 << 60], []), ints("c", [1], [])])
    yield (
        "range_step_zero",
        model(
            [h.make_node("Range", ["a", "b", "c"], ["y"])],
            inputs=[],
            outputs=[("y", T.INT64, None)],
            initializers=[ints("a", [0], []), ints("b", [9], []), ints("c", [0], [])],
        ),
    )
    yield "divide_by_zero", model([h.make_node("Div", ["a", "b"], ["y"])], inputs=[], outputs=[("y", T.INT64, None)],
                                  initializers=[ints("a", [1]), ints("b", [0])])
    yield "divide_min", model([h.make_node("Div", ["a", "b"], ["y"])], inputs=[], outputs=[("y", T.INT64, None)],
                              initializers=[ints("a", [-(1 << 63)]), ints("b", [-1])])
    yield "mod_zero", model([h.make_node("Mod", ["a", "b"], ["y"])], inputs=[], outputs=[("y", T.INT64, None)],
                            initializers=[ints("a", [1]), ints("b", [0])])
    yield "random_huge", model([h.make_node("RandomNormal", [], ["y"], shape=[1 << 40])], inputs=[])
    yield "eye_huge", model([h.make_node("EyeLike", ["z"], ["y"]), h.make_node("ConstantOfShape", ["s"], ["z"])][::-1],
                            inputs=[], initializers=[ints("s", [1 << 20, 1 << 20])])
    yield "window_huge", model([h.make_node("HannWindow", ["n"], ["y"])], inputs=[],
                               initializers=[ints("n", [1 << 60], [])])
    yield "doubling", model([h.make_node("Concat", [f"t{i}", f"t{i}"], [f"t{i + 1}"], axis=0) for i in range(45)],
                            inputs=[("t0", F, [2, 3])], outputs=[("t45", F, None)])
    yield "expand_chain", model([h.make_node("ConstantOfShape", ["s"], ["a"]),
                                 h.make_node("ConstantOfShape", ["t"], ["b"]),
                                 h.make_node("MatMul", ["a", "b"], ["y"])],
                                inputs=[], initializers=[ints("s", [1 << 24, 1]), ints("t", [1, 1 << 24])])


def endless():
    """Valid files that run for ever, or that grow as they run."""
    body = h.make_graph([h.make_node("Identity", ["c"], ["c2"]), h.make_node("Identity", ["v"], ["v2"])], "b",
                        [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("c", T.BOOL, []),
                         h.make_tensor_value_info("v", F, None)],
                        [h.make_tensor_value_info("c2", T.BOOL, []), h.make_tensor_value_info("v2", F, None)])
    yield "loop_for_ever", model([h.make_node("Loop", ["", "t", "x"], ["y"], body=body)],
                                 initializers=[h.make_tensor("t", T.BOOL, [], [True])])
    yield "loop_long", model([h.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
                             initializers=[ints("n", [1 << 60], [])])
    grow = h.make_graph([h.make_node("Identity", ["c"], ["c2"]), h.make_node("Concat", ["v", "v"], ["v2"], axis=0)],
                        "b", [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("c", T.BOOL, []),
                              h.make_tensor_value_info("v", F, None)],
                        [h.make_tensor_value_info("c2", T.BOOL, []), h.make_tensor_value_info("v2", F, None)])
    yield "loop_grows", model([h.make_node("Loop", ["n", "", "x"], ["y"], body=grow)],
                              initializers=[ints("n", [60], [])])
    yield "regex_bomb", model([h.make_node("RegexFullMatch", ["x"], ["y"], pattern="(a*)*(a*)*(a*)*b")],
                              inputs=[("x", T.STRING, [1])], outputs=[("y", T.BOOL, None)])
    yield "regex_repeat", model([h.make_node("RegexFullMatch", ["x"], ["y"], pattern="((a{1000}){1000}){1000}")],
                                inputs=[("x", T.STRING, [1])], outputs=[("y", T.BOOL, None)])


def training():
    base = model([h.make_node("MatMul", ["x", "w"], ["y"])], initializers=[h.make_tensor("w", F, [3, 1], [1.0] * 3)])

    def section(nodes, bindings=(), outputs=("loss",), init=(), init_bindings=()):
        m = onnx.ModelProto()
        m.CopyFrom(base)
        m.opset_import.append(h.make_opsetid("ai.onnx.preview.training", 1))
        t = m.training_info.add()
        t.algorithm.CopyFrom(h.make_graph(list(nodes), "algorithm", [],
                                          [h.make_tensor_value_info(o, F, None) for o in outputs]))
        t.initialization.CopyFrom(h.make_graph(list(init), "initialization", [],
                                               [h.make_tensor_value_info(b[1], F, None) for b in init_bindings]))
        for k, v in bindings:
            t.update_binding.add(key=k, value=v)
        for k, v in init_bindings:
            t.initialization_binding.add(key=k, value=v)
        return m

    loss = h.make_node("ReduceSum", ["y"], ["loss"], keepdims=0)

    def gradient(**a):
        return h.make_node("Gradient", ["w"], ["g"], domain="ai.onnx.preview.training", **a)

    yield "binding_unknown_key", section([loss], [("nobody", "loss")])
    yield "binding_unknown_value", section([loss], [("w", "nobody")])
    yield "binding_twice", section([loss], [("w", "loss"), ("w", "loss")])
    yield "binding_shape", section([loss], [("w", "loss")])
    yield "binding_input", section([loss], [("x", "loss")])
    yield "gradient_unknown_x", section([loss, gradient(xs=["nobody"], y="loss")], outputs=("loss", "g"))
    yield "gradient_unknown_y", section([loss, gradient(xs=["w"], y="nobody")], outputs=("loss", "g"))
    yield "gradient_no_y", section([loss, gradient(xs=["w"])], outputs=("loss", "g"))
    yield "gradient_too_many", section([loss, gradient(xs=["w", "w", "x"], y="loss")], outputs=("loss", "g"))
    yield "algorithm_cycle", section([h.make_node("Add", ["b", "y"], ["a"]), h.make_node("Relu", ["a"], ["b"]), loss])
    yield "init_unknown_key", section([loss], init=[h.make_node("RandomNormal", [], ["n"], shape=[3, 1])],
                                      init_bindings=[("nobody", "n")])
    yield "init_huge", section([loss], [("w", "w2")], ("loss", "w2"),
                               [h.make_node("RandomNormal", [], ["n"], shape=[1 << 40])], [("w", "n")])


def machine_learning():
    def tree(**a):
        base = dict(n_targets=1, nodes_featureids=[0, 0, 0], nodes_falsenodeids=[2, 0, 0], nodes_truenodeids=[1, 0, 0],
                    nodes_hitrates=[1.0] * 3, nodes_missing_value_tracks_true=[0] * 3,
                    nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_nodeids=[0, 1, 2], nodes_treeids=[0, 0, 0],
                    nodes_values=[0.5, 0.0, 0.0], target_ids=[0, 0], target_nodeids=[1, 2], target_treeids=[0, 0],
                    target_weights=[1.0, 2.0])
        base.update(a)
        m = model([h.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **base)])
        m.opset_import.append(h.make_opsetid("ai.onnx.ml", 3))
        return m

    yield "tree_cycle", tree(nodes_truenodeids=[0, 0, 0], nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"],
                             nodes_falsenodeids=[1, 0, 0])
    yield "tree_outside", tree(nodes_truenodeids=[77, 0, 0])
    yield "tree_short", tree(nodes_values=[0.5])
    yield "tree_feature", tree(nodes_featureids=[99, 0, 0])
    yield "tree_target", tree(target_ids=[0, 9])


GROUPS = (lying_tensors, external, broken_graphs, deep, attributes, too_much, endless, training, machine_learning)
# In these groups loading alone need not find it: what is wrong is what the file computes.
AT_RUN_TIME = (too_much, endless, machine_learning)
# These are right (the standard defines their result) or harmless; they must work or be refused, never hang.
HARMLESS = {"regex_bomb", "regex_repeat", "divide_min", "pad_removes_all", "if_depth_24", "external_missing",
            "unknown_attribute"}


def raw_bytes():
    """Damage below what the onnx package can write."""
    good = model([h.make_node("Relu", ["x"], ["y"])]).SerializeToString()
    yield "empty_file", b""
    yield "text_file", b"hello, this is not a model\n" * 10
    yield "zeros", b"\0" * 4096
    yield "truncated", good[: len(good) // 2]
    yield "length_lies", good[:2] + b"\xff\xff\xff\xff\x7f" + good[3:]
    deep_message = b""
    for _ in range(20000):  # a graph attribute in a node in a graph, ...
        for tag in (b"\x0a", b"\x2a", b"\x32"):
            n, size = len(deep_message), b""
            while True:
                size += bytes([(n & 127) | (128 if n > 127 else 0)])
                n >>= 7
                if not n:
                    break
            deep_message = tag + size + deep_message
        if len(deep_message) > 1 << 20:
            break
    yield "nested_messages", b"\x3a" + deep_message[1:]


def all_files():
    """(group, name, bytes, refused when loaded)."""
    for group in GROUPS:
        for name, m in group():
            data = m if isinstance(m, bytes) else m.SerializeToString()
            yield group.__name__, name, data, group not in AT_RUN_TIME and name not in HARMLESS
    for name, data in raw_bytes():
        yield "raw", name, data, True
