"""What Keras itself computes on the examples, without randomness: outputs, loss, what the forward pass assigns,
gradients, and one step of its optimizer. Everything is put back afterwards."""

import contextlib
from dataclasses import dataclass, field

import keras
import numpy as np

from ..shared import versions
from .call import pack_targets, pack_weights


@dataclass
class Reference:
    outputs: list  # arrays of the inference form
    loss: object = None
    train_outputs: list = field(default_factory=list)
    assigned: dict = field(default_factory=dict)  # position in model.weights -> array
    gradients: dict | None = None  # position in trainable_weights -> array; None: the backend cannot differentiate
    rows: dict = field(default_factory=dict)  # position -> (values, positions) of IndexedSlices

    def arrays(self):
        """{(kind, name): array}."""
        found = {("output", k): v for k, v in enumerate(self.outputs)}
        if self.loss is not None:
            found[("loss", "")] = self.loss
            found |= {("train", k): v for k, v in enumerate(self.train_outputs)}
            found |= {("statistics", k): v for k, v in self.assigned.items()}
            found |= {("gradient", k): v for k, v in (self.gradients or {}).items() if v is not None}
        return found


@contextlib.contextmanager
def kept(variables):
    """Variables have their values again afterwards."""
    before = [(v, versions.variable_array(v)) for v in variables]
    try:
        yield
    finally:
        for v, a in before:
            v.assign(a)


def everything(model, optimizer=None):
    """Every variable that a step may write."""
    found = list(model.variables)
    if optimizer is not None:
        found += list(optimizer.variables)
        extra = getattr(optimizer, "_u_product", None)
        found += [extra] if versions.is_variable(extra) else []
    return list({id(v): v for v in found}.values())


def compute(model, call, training, jitter=0):
    """A Reference. jitter: every weight changed by up to so many units in the last place."""
    with kept(everything(model)), versions.without_randomness():
        if jitter:
            jitter_weights(model, jitter)
        inputs = _tensors(call.input_structure, call.inputs)
        with kept(everything(model)):  # layers of one's own may assign here too
            outputs = _flat(model(inputs, training=False))
        if not training:
            return Reference(outputs)
        run = {"tensorflow": _tensorflow, "torch": _torch, "jax": _jax}.get(versions.backend_name(), _forward_only)
        made = run(model, call, inputs)
        made.outputs = outputs
        versions.clear_losses(model)
        return made


def jitter_weights(model, units):
    """Every trained weight moves by up to so many units in its last place."""
    rng = np.random.default_rng(units)
    for v in model.trainable_weights:
        a = versions.variable_array(v)
        step = np.spacing(np.abs(a)) * rng.integers(-units, units + 1, a.shape)
        v.assign((a + step).astype(a.dtype))


def _tensors(structure, slots):
    return keras.tree.pack_sequence_as(structure, [keras.ops.convert_to_tensor(s.example) for s in slots])


def _flat(x):
    return [np.asarray(keras.ops.convert_to_numpy(v)) for v in keras.tree.flatten(x) if v is not None]


def _loss(model, call, outputs):
    parts = []
    if versions.compile_loss(model) is not None:
        y = pack_targets(call.target_structure, [keras.ops.convert_to_tensor(s.example) for s in call.targets])
        weights = pack_weights(call.weight_structure, [keras.ops.convert_to_tensor(s.example) for s in call.weights])
        loss = versions.fresh_compile_loss(model)(y, outputs, weights)
        parts += [] if loss is None else [loss]
    parts += [versions.additional_loss(model, x) for x in model.losses]
    return parts[0] if len(parts) == 1 else sum(parts[1:], parts[0])


def _result(model, before, loss, outputs, gradients):
    after = {k: versions.variable_array(v) for k, v in enumerate(model.weights)}
    changed = {k: a for k, a in after.items() if not np.array_equal(a, before[k], equal_nan=True)}
    return Reference([], np.asarray(keras.ops.convert_to_numpy(loss)), _flat(outputs), changed, gradients)


def _weights_now(model):
    return {k: versions.variable_array(v) for k, v in enumerate(model.weights)}


def _tensorflow(model, call, inputs):
    before = _weights_now(model)
    if call.step is None:
        call.step = _tensorflow_step(model, call, inputs)
    loss, outputs, dense, rows = call.step()
    gradients = {k: dense[k].numpy() if k in dense else None for k in range(len(model.trainable_weights))}
    made = _result(model, before, loss, outputs, gradients)
    made.rows = {k: (v.numpy(), i.numpy()) for k, (v, i) in rows.items()}
    return made


def _tensorflow_step(model, call, inputs):
    """As fit runs it: a graph, made once, or eagerly, with other kernels of TensorFlow."""
    import tensorflow as tf

    trained = model.trainable_weights

    def run():
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            loss = _loss(model, call, outputs)
        found = tape.gradient(loss, [v.value for v in trained])
        rows = {k: (g.values, g.indices) for k, g in enumerate(found) if isinstance(g, tf.IndexedSlices)}
        dense = {k: tf.convert_to_tensor(g) for k, g in enumerate(found) if g is not None}
        return loss, outputs, dense, rows

    return run if getattr(model, "run_eagerly", False) else tf.function(run, autograph=False)


def _torch(model, call, inputs):
    before = _weights_now(model)
    for v in model.trainable_weights:
        v.value.grad = None
    outputs = model(inputs, training=True)
    loss = _loss(model, call, outputs)
    loss.backward()
    gradients = {k: None if v.value.grad is None else v.value.grad.detach().cpu().numpy().copy()
                 for k, v in enumerate(model.trainable_weights)}
    for v in model.trainable_weights:
        v.value.grad = None
    return _result(model, before, loss, outputs, gradients)


def _jax(model, call, inputs):
    import jax

    trained, others = model.trainable_variables, model.non_trainable_variables

    def run(values):
        with keras.StatelessScope(state_mapping=[*zip(trained, values), *zip(others, [v.value for v in others])],
                                  collect_losses=True) as scope:
            outputs = model(inputs, training=True)
            loss = _loss_collected(model, call, outputs, scope)
        return loss, (outputs, [scope.get_current_value(v) for v in model.weights])

    values = [v.value for v in trained]
    (loss, (outputs, now)), found = jax.value_and_grad(run, has_aux=True)(values)
    before = _weights_now(model)
    after = {k: np.asarray(a) for k, a in enumerate(now) if a is not None}
    changed = {k: a for k, a in after.items() if not np.array_equal(a, before[k], equal_nan=True)}
    return Reference([], np.asarray(loss), _flat(outputs), changed, {k: np.asarray(g) for k, g in enumerate(found)})


def _loss_collected(model, call, outputs, scope):
    parts = []
    if versions.compile_loss(model) is not None:
        y = pack_targets(call.target_structure, [keras.ops.convert_to_tensor(s.example) for s in call.targets])
        weights = pack_weights(call.weight_structure, [keras.ops.convert_to_tensor(s.example) for s in call.weights])
        parts.append(versions.fresh_compile_loss(model)(y, outputs, weights))
    parts += [versions.additional_loss(model, x) for x in scope.losses]
    parts += [versions.additional_loss(model, v.regularizer(v)) for v in model.trainable_weights
              if v.regularizer is not None]
    return sum(parts[1:], parts[0])


def _forward_only(model, call, inputs):
    """Keras' numpy backend: no gradients."""
    before = _weights_now(model)
    outputs = model(inputs, training=True)
    loss = _loss(model, call, outputs)
    return _result(model, before, loss, outputs, None)


def slopes(model, call, position, places, size=1e-2):
    """Finite differences of Keras' own loss by elements of a weight."""
    found = []
    with kept(everything(model)), versions.without_randomness():
        inputs = _tensors(call.input_structure, call.inputs)
        v = model.trainable_weights[position]
        plain = versions.variable_array(v)
        frozen = [(w, versions.variable_array(w)) for w in model.variables]
        for place in places:
            losses = []
            for sign in (1, -1):
                for w, a in frozen:
                    w.assign(a)
                moved = plain.copy()
                moved[place] += sign * size
                v.assign(moved)
                losses.append(float(keras.ops.convert_to_numpy(_loss(model, call, model(inputs, training=True)))))
            found.append((losses[0] - losses[1]) / (2 * size))
    return found


def optimizer_step(model, optimizer, gradients, start):
    """{id of a variable: array} after Keras' optimizer has applied these gradients: {position: array, or (values,
    positions) of rows}. start: [(variable, array)], what the forward pass has assigned before."""
    trained = list(optimizer._trainable_variables)
    with kept(everything(model, optimizer)):
        for v, a in start:
            v.assign(a)
        given, variables = [], []
        for k, v in enumerate(trained):
            g = gradients.get(k)
            if g is not None:
                given.append(_as_gradient(g, v))
                variables.append(v)
        optimizer.apply(given, variables)
        return {id(v): versions.variable_array(v) for v in everything(model, optimizer)}


def _as_gradient(g, v):
    if isinstance(g, tuple):
        import tensorflow as tf

        return tf.IndexedSlices(tf.constant(g[0]), tf.constant(g[1]), tf.constant(list(v._shape)))
    return keras.ops.convert_to_tensor(np.array(g))
