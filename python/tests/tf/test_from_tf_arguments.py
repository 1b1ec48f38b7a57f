"""`ot.from_tf`: signatures with fixed sizes, and texts of any shape."""

import numpy as np
import pytest
import tensorflow as tf

import onnxtrain as ot


@tf.function(input_signature=[tf.TensorSpec([6, 3], tf.float32, "x"), tf.TensorSpec([6], tf.int32, "row")])
def sums(x, row):
    return tf.math.unsorted_segment_sum(x, row, 5)


def test_examples_for_a_signature_with_a_fixed_number_of_rows():
    x, row = np.arange(18, dtype=np.float32).reshape(6, 3), np.array([0, 4, 1, 3, 3, 0], np.int32)
    model = ot.from_tf(sums, inputs=(x, row))
    np.testing.assert_array_equal(*ot.Session(model).run({"x": x, "row": row}).values(), sums(x, row).numpy())
    with pytest.raises(ot.ModelError, match="cannot be traced") as error:
        ot.from_tf(sums, inputs=(x[:4], row[:4]))
    assert error.value.code == "OT1622"


def test_rows_with_a_negative_number_belong_to_no_segment():
    x, row = np.arange(18, dtype=np.float32).reshape(6, 3), np.array([0, -1, 1, -5, 3, 0], np.int32)
    model = ot.from_tf(sums)  # the examples of its own have no negative numbers
    np.testing.assert_array_equal(*ot.Session(model).run({"x": x, "row": row}).values(), sums(x, row).numpy())
    ot.from_tf(sums, inputs=(x, row))
    flat = tf.function(lambda x, row: tf.math.unsorted_segment_sum(x, row, 5), input_signature=[
        tf.TensorSpec([None], tf.float32), tf.TensorSpec([None], tf.int64)])
    ot.from_tf(flat, inputs=(x[:, 1], row.astype(np.int64)))


def test_a_saved_model_with_a_fixed_number_of_rows(tmp_path):
    module = tf.Module()
    module.w = tf.Variable(np.ones((3, 2), np.float32), name="w")
    module.apply = tf.function(lambda x: x @ module.w, input_signature=[tf.TensorSpec([4, 3], tf.float32, "x")])
    tf.saved_model.save(module, str(tmp_path / "m"))
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    model = ot.from_tf(str(tmp_path / "m"), "apply", inputs=(x,))
    np.testing.assert_allclose(*ot.Session(model).run({"x": x}).values(), module.apply(x).numpy())


@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (0,), (0, 2)])
@pytest.mark.parametrize("name", ["lower", "upper"])
def test_case_of_texts_of_any_shape(name, shape):
    f = tf.function(getattr(tf.strings, name), input_signature=[tf.TensorSpec(shape, tf.string, "s")])
    s = np.resize(np.array(["A b", "", "zZ"], object), shape)
    with pytest.warns(UserWarning, match="only ASCII letters"):
        model = ot.from_tf(f, inputs=(s,))
    got = next(iter(ot.Session(model).run({"s": s}).values()))
    want = f(tf.constant(s, tf.string)).numpy()
    assert np.shape(got) == np.shape(want)
    assert np.ravel(got).tolist() == [v.decode() for v in np.ravel(want)]


def test_case_of_letters_beyond_ascii():
    spec = [tf.TensorSpec([None], tf.string, "s")]
    s = np.array(["\u00c4b", "C"], object)
    ascii_only = tf.function(lambda s: tf.strings.lower(s), input_signature=spec)
    with pytest.warns(UserWarning, match="only ASCII letters"), pytest.raises(ot.ModelError, match="OT1605"):
        ot.from_tf(ascii_only, inputs=(s,))
    every = tf.function(lambda s: tf.strings.lower(s, encoding="utf-8"), input_signature=spec)
    with pytest.warns(UserWarning, match="several characters"):
        model = ot.from_tf(every, inputs=(s,))
    assert next(iter(ot.Session(model).run({"s": s}).values())).tolist() == ["\u00e4b", "c"]


def test_options_of_a_training_need_one():
    module = tf.Module()
    module.w = tf.Variable(np.ones((3, 2), np.float32), name="w")
    module.f = tf.function(lambda x: {"score": x @ module.w},
                           input_signature=[tf.TensorSpec([None, 3], tf.float32, "x")])
    with pytest.raises(ot.UsageError, match="clip_norm=: options of a training") as error:
        ot.from_tf(module, "f", clip_norm=1.0)
    assert error.value.code == "OT1606"
    with pytest.raises(ot.UsageError, match="an output: score") as error:
        ot.from_tf(module, "f", loss="scores", optimizer=ot.SGD(lr=0.1))
    assert error.value.code == "OT1232"
