"""Random numbers stay live: drawn anew in every step, from the trainer's generator instead of TensorFlow's."""

import numpy as np
import tensorflow as tf

from ..values import Sym
from .table import Unsupported, op

_KINDS = {"RandomUniform": "RandomUniformLike", "RandomStandardNormal": "RandomNormalLike",
          "StatelessRandomUniform": "RandomUniformLike", "StatelessRandomNormal": "RandomNormalLike",
          "StatelessRandomUniformV2": "RandomUniformLike", "StatelessRandomNormalV2": "RandomNormalLike"}


@op(*_KINDS)
def random(n):
    if n.dtype not in (tf.float32, tf.float64, tf.float16):
        raise Unsupported(f"random numbers of type {n.dtype.name}")
    n.walk.random = True
    zeros = n.e.op("ConstantOfShape", n.w.int64(n[0]), value=np.zeros(1, n.dtype.as_numpy_dtype))
    return n.e.op(_KINDS[n.op.type], zeros)


@op("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg", "StatelessRandomGetAlg", "StatelessRandomGetKey")
def key(n):
    """Where TensorFlow's generator stands: of no use to another one."""
    return [Sym(dtype=t.dtype, shape=t.shape, static=np.zeros([d or 1 for d in t.shape], np.int64))
            for t in n.op.outputs]
