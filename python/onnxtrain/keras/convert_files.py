"""Files of `onnxtrain convert` between ONNX and Keras, and its check: one step on both sides."""

import sys

import numpy as np

from ..converters.emitter import RANDOM
from ..graph import Graph, read_graphs
from ..model import load as load_onnx
from ..trainer import Trainer
from . import files

_TOLERANCE, _NOISE = 1e-4, 8


def convert(source, have, target, wanted, verify):
    """0 done, 6 when --verify finds a difference."""
    files.use_some_backend()
    from .from_keras.conversion import convert as from_keras
    from .to_keras import to_keras

    if wanted == "onnx":
        model = files.load(source)
        made = from_keras(model)
        made.save(target)
        if not made.trainable:
            print("note      the file holds no training: an inference model was written", file=sys.stderr)
    else:
        made = load_onnx(source)
        model = to_keras(made)
        files.save(model, target)
    print(f"saved     {target}", file=sys.stderr)
    return _verified(made, model) if verify else 0


def _verified(file, model):
    """One step here and one in Keras on random examples, with randomness switched off."""
    import keras

    from .from_keras import reference as references
    from .from_keras.call import Call

    if not file.trainable or keras.backend.backend() == "numpy":
        # from_keras has compared what can be compared
        print("verify    checked while converting (this backend of Keras does not train)", file=sys.stderr)
        return 0
    call = Call(model, None, None, None, True)
    trainer = Trainer(file)
    feeds = {s.name: s.example for s in call.fed() if s.name in [*trainer.inputs, *trainer.targets]}
    if draws_random_numbers(file):
        print("verify    the step draws random numbers: its parts were checked while converting", file=sys.stderr)
        return 0
    loss = trainer.step(feeds).loss
    reference = references.compute(model, call, True)
    difference = abs(loss - float(reference.loss)) / max(abs(float(reference.loss)), 1e-6)
    from .to_keras import keras_weights

    want = _keras_step(model, call)
    worst = max(difference, _apart(keras_weights(trainer), want))
    limit = _TOLERANCE
    if worst > limit:  # what Keras differs by from itself when its weights change in their last bit
        limit = max(limit, _NOISE * max(_apart(_keras_step(model, call, k), want) for k in (1, 2)))
    agree = worst <= limit
    print(f"verify    {'agree' if agree else 'differ'}: largest difference of loss and weights after one step "
          f"{worst:.2g}", file=sys.stderr)
    return 0 if agree else 6


def draws_random_numbers(file):
    """Whether two steps on the same rows may differ."""
    def found(nodes):
        return any(n.op in RANDOM and (n.op != "Dropout" or len(n.inputs) > 2)
                   or any(found(a.nodes) for a in n.attrs.values() if isinstance(a, Graph)) for n in nodes)

    graphs = read_graphs(file)
    return any(found(g.nodes) for g in (graphs.main, *(s.algorithm for s in graphs.sections)))


def _apart(a, b):
    """The largest difference over the largest element of each."""
    return max(float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-6)) for x, y in zip(a, b) if y.size)


def _keras_step(model, call, jitter=0):
    import keras

    from .from_keras.call import pack_targets
    from .from_keras.reference import everything, jitter_weights, kept

    inputs = keras.tree.pack_sequence_as(call.input_structure, [s.example for s in call.inputs])
    targets = pack_targets(call.target_structure, [s.example for s in call.targets])
    with kept(everything(model, model.optimizer)):
        if jitter:
            jitter_weights(model, jitter)
        model.train_on_batch(inputs, targets)
        return [np.array(keras.ops.convert_to_numpy(v)) for v in model.weights]
