"""Bodies that do not fit their node: If, Loop and Scan with wrong counts, axes or types."""

from onnx import TensorProto as T
from onnx import helper as h

from workshop import model


def control(node, extra=(), inputs=("x",)):
    """A model of one control-flow node on x [3]."""

    def build():
        g = h.make_graph(
            [*extra, node],
            "g",
            [h.make_tensor_value_info("x", T.FLOAT, [3])],
            [h.make_tensor_value_info(o, T.FLOAT, None) for o in node.output[:1]],
        )
        return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)

    return model("flow.onnx", build)


def body(inputs, nodes, outputs):
    return h.make_graph(
        nodes, "body", [h.make_tensor_value_info(*i) for i in inputs], [h.make_tensor_value_info(*o) for o in outputs]
    )


F, INT, B = T.FLOAT, T.INT64, T.BOOL
N = h.make_node
YES = N("Constant", [], ["yes"], value=h.make_tensor("yes", B, [], [True]))
TRIPS = N("Constant", [], ["trips"], value=h.make_tensor("trips", INT, [], [2]))
ITER = [("i", INT, []), ("c", B, [])]
KEEP = N("Identity", ["c"], ["c2"])


def branch(n, elem=F):
    nodes = [N("Cast", ["x"], [f"o{k}{elem}{n}"], to=elem) for k in range(n)]
    return body([], nodes, [(f"o{k}{elem}{n}", elem, [3]) for k in range(n)])


def loop(inputs, nodes, outputs, trips=2):
    """A model of one Loop on x: `inputs` of its body behind the iteration and the condition."""
    count = N("Constant", [], ["trips"], value=h.make_tensor("trips", INT, [], [trips]))
    node = N("Loop", ["trips", "yes", "x"], ["y"], "again", body=body([*ITER, *inputs], nodes, outputs))
    return control(node, [YES, count])


def scan(**attributes):
    """A model of one Scan over the elements of x."""
    each = body([("e", F, [])], [N("Identity", ["e"], ["o"])], [("o", F, [])])
    return control(N("Scan", ["x"], ["y"], "scan", body=each, **attributes))


FLOW = [
    (
        "If with different counts of outputs",
        control(N("If", ["yes"], ["y"], "choose", then_branch=branch(1), else_branch=branch(2)), [YES]),
        ["'choose'", "then_branch", "else_branch"],
    ),
    (
        "If with different types",
        control(N("If", ["yes"], ["y"], "choose", then_branch=branch(1), else_branch=branch(1, INT)), [YES]),
        ["'choose'", "int64"],
    ),
    (
        "If on a number",
        control(N("If", ["trips"], ["y"], "choose", then_branch=branch(1), else_branch=branch(1)), [TRIPS]),
        ["'choose'", "int64"],
    ),
    (
        "Loop whose body lacks an input",
        loop([], [KEEP, N("Identity", ["x"], ["s2"])], [("c2", B, []), ("s2", F, [3])]),
        ["'again'", "3"],
    ),
    (
        "Loop whose body lacks an output",
        loop([("s", F, [3])], [KEEP], [("c2", B, [])]),
        ["'again'"],
    ),
    (
        "Loop whose state changes its type",
        loop([("s", F, [3])], [KEEP, N("Cast", ["s"], ["s2"], to=INT)], [("c2", B, []), ("s2", INT, [3])]),
        ["'again'", "int64"],
    ),
    (
        "Loop whose condition is a number",
        loop(
            [("s", F, [3])],
            [N("Identity", ["i"], ["c2"]), N("Identity", ["s"], ["s2"])],
            [("c2", INT, []), ("s2", F, [3])],
        ),
        ["'again'", "bool"],
    ),
    (
        "Scan over more inputs than it has",
        scan(num_scan_inputs=3),
        ["'scan'", "num_scan_inputs", "3"],
    ),
    (
        "Scan along an axis that is not there",
        scan(num_scan_inputs=1, scan_input_axes=[4]),
        ["'scan'", "4"],
    ),
    (
        "Scan with two axes for one input",
        scan(num_scan_inputs=1, scan_input_axes=[0, 0]),
        ["'scan'", "scan_input_axes"],
    ),
    (
        "Scan whose body lacks an input",
        control(
            N(
                "Scan",
                ["x", "x"],
                ["y", "z"],
                "scan",
                num_scan_inputs=1,
                body=body([("e", F, [])], [N("Identity", ["e"], ["o"])], [("o", F, [])]),
            )
        ),
        ["'scan'", "2"],
    ),
]
