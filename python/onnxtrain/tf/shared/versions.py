"""Everything that depends on TensorFlow's version, in one place.

`TABLE` says which versions are known: what was tried, and what differs. Code elsewhere in this package uses public
TensorFlow only, and these functions.
"""

import inspect
import warnings

import tensorflow as tf

from ...errors import ModelError

TABLE = {  # (major, minor) -> notes
    (2, 18): "the oldest that is promised",
    (2, 19): "as 2.18",
    (2, 20): "as 2.18",
    (2, 21): "as 2.18; the version the tests run with",
}
OLDEST, TESTED = (2, 18), (2, 21)


def version_of(text):
    """"2.21.0-rc1" -> (2, 21)."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def check_version(text=None):
    """Refuses versions that are older than what is promised; newer ones than the tested are tried with a warning."""
    text = text or tf.__version__
    have = version_of(text)
    if have < OLDEST:
        raise ModelError(f"TensorFlow {text} is older than {OLDEST[0]}.{OLDEST[1]}, the oldest that onnxtrain knows",
                         "OT1607", f"pip install 'tensorflow=={TESTED[0]}.{TESTED[1]}.*'")
    if have > TESTED:
        warnings.warn(f"onnxtrain was tested with TensorFlow up to {TESTED[0]}.{TESTED[1]}; this is {text}",
                      stacklevel=3)
    return have


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
    with tf.init_scope():
        got = _call(op, [tf.constant(v) for v in values])
        return [t.numpy() for t in got]


def infer_shapes(op, known):
    """Shapes of an operation's results; known: of each input a TensorShape, or its value as numpy."""
    with tf.Graph().as_default():
        given = [tf.constant(k) if not isinstance(k, tf.TensorShape) else tf.compat.v1.placeholder(t.dtype, k)
                 for k, t in zip(known, op.inputs)]
        return [t.shape for t in _call(op, given)]


def _call(op, tensors):
    """The operation again on other tensors; a list of its results."""
    call = getattr(tf.raw_ops, op.type)
    given, at = {}, 0
    for arg in op.op_def.input_arg:
        if arg.number_attr or arg.type_list_attr:
            count = op.get_attr(arg.number_attr) if arg.number_attr else len(op.get_attr(arg.type_list_attr))
            given[arg.name] = tensors[at:at + count]
            at += count
        else:
            given[arg.name] = tensors[at]
            at += 1
    for name in inspect.signature(call).parameters:
        if name not in given and name != "name":
            given[name] = op.get_attr(name)
    got = call(**given)
    return list(got) if isinstance(got, (list, tuple)) else [got]
