"""Everything that depends on TensorFlow's version, in one place.

`TABLE` says which versions are known: what was tried, and what differs. Code elsewhere in this package uses public
TensorFlow only, and these functions.
"""

import tensorflow as tf

from ...converters.versions import check_range

TABLE = {  # (major, minor) -> notes
    (2, 18): "2.18.1: all of python/tests/tf passes",
    (2, 19): "not tried",
    (2, 20): "not tried",
    (2, 21): "the version the tests run with",
}
OLDEST, TESTED = (2, 18), (2, 21)


def check_version(text=None):
    """Refuses versions that are older than what is promised; newer ones than the tested are tried with a warning."""
    return check_range("TensorFlow", "tensorflow", text or tf.__version__, OLDEST, TESTED)


def function_graph(definition, shapes):
    """The FuncGraph of a FunctionDef for arguments of these shapes."""
    from tensorflow.python.framework import function_def_to_graph

    known = [tf.TensorShape(s).as_proto() for s in shapes]
    with tf.init_scope():
        return function_def_to_graph.function_def_to_graph(definition, known, propagate_device_spec=False)


def library_of(graph):
    """{name: FunctionDef} of every function that a graph calls, however deep."""
    return {f.signature.name: f for f in graph.as_graph_def().library.function}


def run_operation(op, values):
    """Results of an operation of a graph for numpy values, computed now."""
    with tf.Graph().as_default() as graph:
        made = _again(graph, op, [tf.constant(v, t.dtype) for v, t in zip(values, op.inputs)])
        with tf.compat.v1.Session(graph=graph) as session:
            return session.run(list(made.outputs))


def infer_shapes(op, known):
    """Shapes of an operation's results; known: of each input a TensorShape, or its value as numpy."""
    with tf.Graph().as_default() as graph:
        given = [tf.compat.v1.placeholder(t.dtype, k) if isinstance(k, tf.TensorShape) else tf.constant(k, t.dtype)
                 for k, t in zip(known, op.inputs)]
        return [t.shape for t in _again(graph, op, given).outputs]


def _again(graph, op, tensors):
    """The operation once more, on other tensors."""
    attributes = {k: v for k, v in op.node_def.attr.items() if not k.startswith("_")}
    return graph.create_op(op.type, tensors, [t.dtype for t in op.outputs], attrs=attributes)
