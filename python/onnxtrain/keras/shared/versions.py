"""Everything that depends on Keras' version or looks behind its public interface, in one place.

`TABLE` says which versions are known. Code elsewhere in this package uses public Keras, and these functions.
"""

import contextlib
import sys
import types
import warnings

import numpy as np

from ...converters.versions import check_range
from ...errors import ModelError

TABLE = {  # (major, minor) -> what was tried
    (3, 10): "3.10.0 with TensorFlow 2.21 and with 2.18.1: all of python/tests/keras3 (gelu in float64 is refused with "
             "2.18.1); its own Muon does not run in TensorFlow, its CategoryEncoding cannot be traced",
    (3, 11): "3.11.3: as 3.12",
    (3, 12): "3.12.4 with TensorFlow 2.21: test_from_keras, test_keras_details, test_keras_optimizers, "
             "test_keras_refusals, test_loops and test_keras_names pass",
    (3, 13): "3.13.2: as 3.12",
    (3, 14): "3.14.1: as 3.12; test_augmentation, test_keras_kinks and test_to_keras_generic pass too",
    (3, 15): "the version the tests run with",
}
OLDEST, TESTED = (3, 10), (3, 15)


def check_version(text=None):
    """Refuses versions that lack what we need; newer ones than the tested are tried with a warning."""
    import keras

    return check_range("Keras", "keras", text or keras.__version__, OLDEST, TESTED)


# ---- small questions
def backend_name():
    import keras

    return keras.backend.backend()


def is_variable(x):
    from keras.src.backend.common.variables import Variable

    return isinstance(x, Variable)


def floatx():
    import keras

    return keras.config.floatx()


def standardize_dtype(dtype):
    import keras

    return keras.backend.standardize_dtype(dtype)


def numpy_dtype(dtype):
    name = standardize_dtype(dtype)
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def result_type(*values):
    """Keras' own promotion; Python numbers are weak, and so are the types of Python."""
    from keras.src.backend.common.dtypes import result_type as promote

    def kind(v):
        if isinstance(v, type):
            return v
        return int if isinstance(v, int) and not isinstance(v, bool) else getattr(v, "dtype", type(v))

    return promote(*map(kind, values))


def to_numpy(x):
    """Numbers, numpy arrays and tensors of the backend."""
    if isinstance(x, (bool, int, float, np.ndarray, np.generic, list, tuple, str)):
        return np.asarray(x)
    from keras.src import backend

    return np.asarray(_original(backend.core, "convert_to_numpy")(x))


def variable_array(v):
    """A variable's array, whatever scope is running."""
    from keras.src import backend

    value = v._value
    if value is None:
        raise ModelError(f"the variable '{v.path}' has no value", "OT1606", "build the model: call it on an example")
    return np.array(_original(backend.core, "convert_to_numpy")(value))


def flatten(x):
    import keras

    return keras.tree.flatten(x)


def map_structure(f, *x):
    import keras

    return keras.tree.map_structure(f, *x)


def pack(structure, flat):
    import keras

    return keras.tree.pack_sequence_as(structure, flat)


def conv_output_shape(shape, filters, size, strides, padding, data_format, dilations):
    from keras.src.ops.operation_utils import compute_conv_output_shape

    return compute_conv_output_shape(tuple(shape), filters, size, strides, padding, data_format, dilations)


def layer_path(layer):
    return (getattr(layer, "path", None) or layer.name).split("/")[-1]


# ---- tracing
_MODULES = ("numpy", "nn", "core", "math", "image", "linalg", "random")
_KEEP = {"compute_output_spec", "name_scope", "device_scope", "random_seed_dtype", "draw_seed", "SeedGenerator",
         "Variable", "convert_to_numpy", "is_tensor", "shape", "make_default_seed", "cond", "is_int_dtype",
         "standardize_dtype", "is_float_dtype", "global_seed_generator", "get_stateless_scope", "in_stateless_scope"}
_ORIGINALS = {}  # (module, name) -> function, while a trace is running


def _original(module, name):
    return _ORIGINALS.get((module.__name__, name)) or getattr(module, name)


class _Patches:
    def __init__(self):
        self.undo = []

    def set(self, owner, name, value):
        had = name in vars(owner)
        self.undo.append((owner, name, vars(owner).get(name), had))
        setattr(owner, name, value)

    def restore(self):
        for owner, name, value, had in reversed(self.undo):
            if had:
                setattr(owner, name, value)
            else:
                delattr(owner, name)


@contextlib.contextmanager
def tracing(tracer):
    """Sends every operation on traced tensors and on the model's variables to the tracer; yields the scope that holds
    what is assigned. Keras is as before afterwards."""
    import keras
    from keras.src.backend import StatelessScope

    patches, filtering = _Patches(), keras.config.is_traceback_filtering_enabled()
    try:
        keras.config.disable_traceback_filtering()
        _patch_symbolic(patches, tracer)
        _patch_calls(patches, tracer)
        _patch_backend(patches, tracer)
        _patch_optimizers(patches)
        with StatelessScope(collect_losses=True, initialize_variables=False) as scope, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scope.add_update = lambda update: tracer.assigned(*update)
            for entry in tracer.state.entries:
                scope.state_mapping[id(entry.variable)] = entry.traced()
            yield scope
    finally:
        patches.restore()
        _ORIGINALS.clear()
        if filtering:
            keras.config.enable_traceback_filtering()


def _any(tracer, args, kwargs):
    for x in [*(args or ()), *((kwargs or {}).values())]:
        if tracer.is_symbolic(x):
            return True
        if isinstance(x, (tuple, list, dict)) and any(tracer.is_symbolic(v) for v in flatten(x)):
            return True
    return False


def _patch_symbolic(patches, tracer):
    """keras.ops asks any_symbolic_tensors: variables and open sizes count too."""
    def any_symbolic_tensors(args=None, kwargs=None):
        return _any(tracer, args, kwargs)

    for name, module in list(sys.modules.items()):
        if name.startswith("keras.src") and isinstance(module, types.ModuleType) \
                and "any_symbolic_tensors" in vars(module):
            patches.set(module, "any_symbolic_tensors", any_symbolic_tensors)
    _patch_sizes(patches)


def _patch_sizes(patches):
    """Open sizes are a kind of int: 3.11 to 3.14 ask for the element type of every size of a shape."""
    from keras.src.backend.common import variables

    plain = variables.is_int_dtype

    def is_int_dtype(dtype):
        return isinstance(dtype, type) and issubclass(dtype, int) and dtype is not bool or plain(dtype)

    patches.set(variables, "is_int_dtype", is_int_dtype)


def _patch_calls(patches, tracer):
    from keras.src.layers import layer as layers
    from keras.src.layers.layer import Layer
    from keras.src.ops import core as ops_core
    from keras.src.ops import operation

    from ..from_keras.lower.casts import keeping_type

    patches.set(operation.Operation, "symbolic_call", lambda op, *a, **k: tracer.operation(op, a, k))
    patches.set(Layer, "symbolic_call", lambda layer, *a, **k: tracer.layer(layer, a, k))
    patches.set(layers, "Node", lambda **k: None)  # the user's layers keep their nodes
    patches.set(ops_core.ConvertToTensor, "__init__", keeping_type(ops_core.ConvertToTensor.__init__))
    patches.set(ops_core.Cond, "__call__", lambda op, *a, **k: tracer.operation(op, a, k))
    names = ("keras.ops", "keras._tf_keras.keras.ops", "keras.src.ops", "keras.src.ops.core")
    public = [m for n, m in list(sys.modules.items()) if n in names]
    plain_shape = ops_core.shape

    def shape(x):
        return tracer.shape_of(x) if tracer.is_symbolic(x) else plain_shape(x)

    plain_gradient = ops_core.custom_gradient

    def custom_gradient(f):
        def call(*a, **k):
            return tracer.refuse("keras.ops.custom_gradient: a file has the gradient of what is computed") \
                if _any(tracer, a, k) else plain_gradient(f)(*a, **k)

        return call

    for m in public:
        for name, own in (("shape", shape), ("custom_gradient", custom_gradient)):
            if name in vars(m):
                patches.set(m, name, own)


def _patch_backend(patches, tracer):
    """Layers that call the backend's functions themselves: the same function of keras.ops is meant."""
    import keras
    from keras.src import backend

    package = sys.modules[f"keras.src.backend.{backend.backend()}"]
    for part in _MODULES:
        module = getattr(backend, part)
        for name, f in list(vars(module).items()):
            if name.startswith("_") or name in _KEEP or not isinstance(f, types.FunctionType) \
                    or f.__module__ != module.__name__:
                continue
            _ORIGINALS[module.__name__, name] = f
            wrapper = _dispatch(tracer, part, name, f, keras)
            patches.set(module, name, wrapper)
            for owner in (package, backend):
                if vars(owner).get(name) is f:
                    patches.set(owner, name, wrapper)
    _patch_recurrent(patches, tracer, (package, backend))
    is_tensor = backend.is_tensor
    for owner in (backend.core, package, backend):
        if "is_tensor" in vars(owner):
            patches.set(owner, "is_tensor", lambda x: tracer.is_symbolic(x) or is_tensor(x))
        if "shape" in vars(owner):
            plain = vars(owner)["shape"]
            patches.set(owner, "shape",
                        lambda x, plain=plain: tracer.shape_of(x) if tracer.is_symbolic(x) else plain(x))


def _patch_recurrent(patches, tracer, owners):
    from ..from_keras.lower import recurrent

    def absent(*args, **kwargs):
        raise NotImplementedError

    for owner in owners:
        patches.set(owner, "rnn", lambda *a, **k: recurrent.scan(tracer, *a, **k))
        for name in ("lstm", "gru", "bidirectional_lstm", "bidirectional_gru"):
            patches.set(owner, name, absent)
        patches.set(owner, "cudnn_ok", lambda *a, **k: False)


def _dispatch(tracer, part, name, f, keras):
    from ..from_keras.lower.backend_calls import BACKEND_CALLS

    special = BACKEND_CALLS.get((part, name))

    def call(*args, **kwargs):
        if part == "random":
            if special is None:
                return tracer.refuse(f"keras.random.{name} has no form here")
            return special(tracer, *args, **kwargs)
        if not _any(tracer, args, kwargs):
            return f(*args, **kwargs)
        if special is not None:
            return special(tracer, *args, **kwargs)
        same = getattr(keras.ops.image if part == "image" else keras.ops, name, None)
        if same is None or name in tracer.sent_back:  # it came from there
            return tracer.refuse(f"the backend's function {part}.{name} has no form here")
        tracer.sent_back.append(name)
        try:
            return same(*args, **kwargs)
        finally:
            tracer.sent_back.pop()

    return call


_OPTIMIZER = ("assign", "assign_add", "assign_sub", "_apply_weight_decay", "_backend_update_step",
              "_backend_apply_gradients", "_backend_reset_gradient_accumulators",
              "_backend_increment_gradient_accumulators", "_overwrite_model_variables_with_average_value",
              "_update_model_variables_moving_average")


def _patch_optimizers(patches):
    """Backends have faster or distributed forms of what the base class writes in keras.ops."""
    from keras.src.optimizers.base_optimizer import BaseOptimizer

    patches.set(BaseOptimizer, "_clip_by_norm", _clip_by_norm)
    for name, module in list(sys.modules.items()):
        if not name.startswith("keras.src.backend.") or "optimizer" not in name:
            continue
        for cls in list(vars(module).values()):
            if isinstance(cls, type) and issubclass(cls, BaseOptimizer) and cls.__module__ == name:
                for method in (*_OPTIMIZER, "_clip_by_norm"):
                    if method in vars(cls):
                        patches.set(cls, method, getattr(BaseOptimizer, method))


def _clip_by_norm(optimizer, values, axes=None):
    """As BaseOptimizer has it, but rows of a gradient stay rows: what TensorFlow's function does."""
    from keras import ops

    total = ops.sum(ops.square(values), axes, keepdims=True)
    some = total > 0
    norm = ops.where(some, ops.sqrt(ops.where(some, total, ops.ones_like(total))), total)
    return ops.divide(ops.multiply(values, optimizer.clipnorm), ops.maximum(norm, optimizer.clipnorm))


class _Quiet:
    """In the place of the metric that follows each loss of several."""

    def __init__(self, *args, **kwargs):
        pass

    def __bool__(self):
        return False


def fresh_compile_loss(model):
    """The loss as compile() described it, not yet built, without metrics; the model's own is left alone."""
    from keras.src.trainers import compile_utils

    own = model._compile_loss
    made = compile_utils.CompileLoss(own._user_loss, own._user_loss_weights, reduction=own.reduction,
                                     output_names=own.output_names)
    build = made.build

    def build_quietly(*args):
        patches = _Patches()
        patches.set(compile_utils, "metrics_module", types.SimpleNamespace(Mean=_Quiet))
        try:
            build(*args)
        finally:
            patches.restore()
        if len(made._flat_losses) > 1:
            made._metrics[:] = [_Quiet() for _ in made._flat_losses]

    made.build = build_quietly
    return made


def additional_loss(model, loss):
    return model._aggregate_additional_loss(loss)


def keeps_its_step(model):
    """Whether weights that are frozen now do not change what fit does: TensorFlow goes on with the graph that it has
    made, until another shape comes; JAX raises an error. PyTorch, and TensorFlow run eagerly, look every time."""
    if backend_name() == "tensorflow":
        return getattr(model, "train_function", None) is not None and not model.run_eagerly
    return backend_name() == "jax"


def compile_loss(model):
    return getattr(model, "_compile_loss", None)


# ---- optimizers
@contextlib.contextmanager
def optimizer_in_trace(optimizer):
    """Variables are found by identity: TensorFlow's keys ask for the value of a variable, which is symbolic now."""
    decays = {id(v): optimizer._use_weight_decay(v._value if backend_name() == "tensorflow" else v)
              for v in optimizer._trainable_variables}
    own = vars(optimizer)
    before = {k: own.get(k) for k in ("_trainable_variables_indices", "_var_key", "_use_weight_decay")}
    counter = optimizer._iterations
    dtype = counter._dtype
    own["_trainable_variables_indices"] = {id(v): k for k, v in enumerate(optimizer._trainable_variables)}
    own["_var_key"] = id
    own["_use_weight_decay"] = lambda v: decays[id(v)]
    counter._dtype = "int64"  # the same file on every backend
    try:
        yield
    finally:
        counter._dtype = dtype
        for key, value in before.items():
            if value is None:
                own.pop(key, None)
            else:
                own[key] = value


def apply(optimizer, gradients, variables):
    from keras.src.optimizers.base_optimizer import BaseOptimizer

    BaseOptimizer.apply(optimizer, gradients, variables)


# ---- running Keras without randomness
PLACE = 0.3125  # of a uniform number in its range: not the middle, where rotations and shifts do nothing


@contextlib.contextmanager
def without_randomness():
    """Dropout keeps everything; a uniform number lies at PLACE of its range, a normal one half a deviation above its
    mean: what converters/fixed_random.py makes of the file."""
    from keras import ops
    from keras.src import backend

    def middle(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
        dtype = dtype or floatx()
        low, high = ops.cast(minval, dtype), ops.cast(maxval, dtype)
        return ops.broadcast_to(low + (high - low) * PLACE, shape)

    def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
        return ops.zeros(shape, dtype or floatx()) + mean + 0.5 * stddev

    def randint(shape, minval, maxval, dtype="int32", seed=None):
        return ops.cast(ops.floor(middle(shape, minval, maxval, floatx())), dtype)

    def categorical(logits, num_samples, dtype="int32", seed=None):
        first = ops.cast(ops.argmax(logits, axis=-1, keepdims=True), dtype)
        return ops.repeat(first, num_samples, axis=1)

    patches = _Patches()
    try:
        for name, f in (("dropout", lambda inputs, *a, **k: inputs), ("uniform", middle), ("normal", normal),
                        ("randint", randint), ("shuffle", lambda x, *a, **k: x), ("categorical", categorical)):
            patches.set(backend.random, name, f)
        yield
    finally:
        patches.restore()


def refresh(model):
    """What layers keep beside their weights, after the weights were written."""
    for layer in model._flatten_layers():
        if any(c.__name__ == "Normalization" and c.__module__.startswith("keras.") for c in type(layer).__mro__) \
                and layer.built:
            layer.finalize_state()


def clear_losses(model):
    model._clear_losses()


def weights_of_config(config):
    """Bytes of the variables that Keras makes of a model's config, until it is done or raises an error; nothing is
    allocated."""
    import keras
    from keras.src.backend import StatelessScope
    from keras.src.backend.common import global_state

    waiting = list(global_state.get_global_attribute("uninitialized_variables") or [])  # Keras appends to its own list
    try:
        with StatelessScope(initialize_variables=False), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(Exception):  # whatever Keras raises is said when it reads the file
                keras.saving.deserialize_keras_object(config, safe_mode=True)
        known = {id(v) for v in waiting}
        made = [v for v in global_state.get_global_attribute("uninitialized_variables") or [] if id(v) not in known]
        return sum(int(np.prod(v._shape, dtype=np.float64)) * numpy_dtype(v._dtype).itemsize for v in made)
    finally:
        global_state.set_global_attribute("uninitialized_variables", waiting)
