"""Element types between ONNX, numpy and TensorFlow."""

import numpy as np
import tensorflow as tf

FROM_ONNX = {  # ONNX's number -> TensorFlow's type
    1: tf.float32, 2: tf.uint8, 3: tf.int8, 4: tf.uint16, 5: tf.int16, 6: tf.int32, 7: tf.int64, 8: tf.string,
    9: tf.bool, 10: tf.float16, 11: tf.float64, 12: tf.uint32, 13: tf.uint64, 14: tf.complex64, 15: tf.complex128,
    16: tf.bfloat16,
}
TO_ONNX = {t: n for n, t in FROM_ONNX.items()}


def as_array(array):
    """A numpy array that TensorFlow takes: texts as bytes."""
    if array.dtype == object:
        flat = [x.encode("utf-8", "surrogateescape") if isinstance(x, str) else x for x in array.reshape(-1)]
        return np.array(flat, dtype=object).reshape(array.shape)
    return array
