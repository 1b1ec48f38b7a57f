"""`ot.from_tf`: functions of TensorFlow as files. Each conversion compares outputs and gradients with TensorFlow's."""

import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

import functions
import functions_plain
import onnxtrain as ot
from onnxtrain.graph import read_graphs

SAMPLE = ["conv", "transposed", "1d", "masked", "rnn", "loss sparse", "loss CategoricalCrossentropy", "while", "cond",
          "scan", "slices", "shapes", "indices", "arithmetic", "reductions", "images", "calls", "words",
          "matrices", "case", "patches", "range", "shift"]
CASES = {**functions.CASES, **functions_plain.CASES}


@pytest.mark.parametrize("name", SAMPLE)
def test_function(name):
    function, examples, _ = CASES[name]()
    model = ot.from_tf(function, inputs=examples)
    assert functions_plain.transposes_between(read_graphs(model).main) == 0
    assert ot.check(model) == []


class Net(tf.Module):
    def __init__(self, seed=1):
        super().__init__()
        g = tf.random.Generator.from_seed(seed)
        self.kernel = tf.Variable(g.normal([3, 3, 2, 4]) * 0.3, name="conv/kernel")
        self.bias = tf.Variable(g.normal([4]), name="conv/bias")
        self.head = tf.Variable(g.normal([4, 3]), name="head")
        self.scale = tf.Variable(2.0, trainable=False, name="scale")

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 2], tf.float32, "image")], autograph=False)
    def __call__(self, image):
        y = tf.nn.relu(tf.nn.conv2d(image, self.kernel, 2, "SAME") + self.bias)
        return {"logits": tf.reduce_mean(tf.nn.max_pool2d(y, 2, 1, "SAME"), [1, 2]) @ self.head * self.scale}

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 2], tf.float32, "image"),
                                  tf.TensorSpec([None], tf.int64, "label")], autograph=False)
    def with_loss(self, image, label):
        scores = self(image)["logits"]
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(label, scores)
        return {"loss": tf.reduce_mean(loss), "logits": scores}


def steps_in_tensorflow(net, image, label, count, rate):
    losses = []
    for _ in range(count):
        with tf.GradientTape() as tape:
            loss = net.with_loss(image, label)["loss"]
        for v, g in zip(net.trainable_variables, tape.gradient(loss, net.trainable_variables)):
            v.assign_sub(rate * g)
        losses.append(float(loss))
    return losses


def test_a_module_a_folder_and_a_checkpoint_train_as_tensorflow_does(tmp_path):
    net = Net()
    rng = np.random.default_rng(0)
    image, label = rng.normal(size=(4, 8, 8, 2)).astype(np.float32), np.array([0, 1, 2, 0])
    tf.saved_model.save(net, tmp_path / "saved")
    path = tf.train.Checkpoint(model=net).save(tmp_path / "checkpoint")
    sources = [(net, {}), (tmp_path / "saved", {}), (Net(9), {"checkpoint": path})]
    made = [ot.from_tf(s, "with_loss", loss="loss", optimizer=ot.SGD(lr=0.1), **more) for s, more in sources]
    want = steps_in_tensorflow(net, image, label, 5, 0.1)
    for model in made:
        t = ot.Trainer(model)
        assert {"conv/kernel", "conv/bias", "head"} <= set(t.state) and "scale" not in t.state
        got = [t.step({"image": image, "label": label}).loss for _ in range(5)]
        np.testing.assert_allclose(got, want, rtol=1e-5)
        np.testing.assert_allclose(t.state["conv/kernel"], net.kernel.numpy(), rtol=1e-4, atol=1e-6)
    plain = ot.from_tf(tmp_path / "saved", "__call__")
    assert plain.inputs == ["image"] and plain.outputs == ["logits"] and not plain.trainable


def test_running_statistics_are_part_of_the_step():
    function, x, model = functions.CASES["conv training"]()
    with pytest.raises(ot.ModelError) as e:
        ot.from_tf(function, inputs=x)
    assert e.value.code == "OT1624" and "moving" in str(e.value)
    target = np.zeros((2, 3), np.float32)
    trainer = ot.Trainer(ot.from_tf(function, inputs=x, loss="mse", optimizer=ot.SGD(lr=0.0)))
    before = {n: trainer.state[n].copy() for n in trainer.state if "moving" in n}
    trainer.step({trainer.inputs[0]: x, trainer.targets[0]: target})
    model(x, training=True)
    assert len(before) == 2
    for n in before:
        assert not np.array_equal(trainer.state[n], before[n])
        variable = next(v for v in model.non_trainable_variables if v.path.endswith(n.split("/")[-1]))
        np.testing.assert_allclose(trainer.state[n], variable.numpy(), rtol=1e-5, atol=1e-6)


def test_there_and_back_with_state(tmp_path):
    net = Net()
    model = ot.from_tf(net, "__call__", loss="cross_entropy", optimizer=ot.Adam(lr=0.01))
    rng = np.random.default_rng(0)
    feeds = {"image": rng.normal(size=(4, 8, 8, 2)).astype(np.float32), "label": np.array([0, 1, 2, 0])}
    whole = ot.Trainer(model)
    want = [whole.step(feeds).loss for _ in range(6)]
    first = ot.Trainer(model)
    got = [first.step(feeds).loss for _ in range(2)]
    made = ot.to_tf(first)
    got += [float(made.train_step(**feeds)["loss"]) for _ in range(2)]
    made.save(tmp_path / "saved")
    last = ot.Trainer(ot.from_tf(tmp_path / "saved"))
    got += [last.step(feeds).loss for _ in range(2)]
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_obstacles_are_named_at_once_with_their_lines():
    @tf.function(input_signature=[tf.TensorSpec([3, 3], tf.float32)], autograph=False)
    def bad(x):
        a = tf.linalg.svd(x)[0]
        b = tf.numpy_function(np.sort, [x], tf.float32)
        return a, b

    with pytest.raises(ot.ModelError) as e:
        ot.from_tf(bad)
    text = str(e.value)
    assert e.value.code == "OT1601" and "Svd" in text and "PyFunc" in text and "test_from_tf.py" in text


def test_bad_sources(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "saved_model.pb").write_bytes(b"\x0a\xff\xff\xff\xff\x0fnonsense")
    tf.saved_model.save(Net(), tmp_path / "saved")
    cases = [(tmp_path / "none", {}, "OT1621"), (tmp_path / "empty", {}, "OT1621"), (tmp_path / "broken", {}, "OT1621"),
             (tmp_path / "saved", {"signature": "serve"}, "OT1622"), (tf.Module(), {}, "OT1622"),
             (tmp_path / "saved", {"signature": "with_loss", "checkpoint": tmp_path / "none"}, "OT1623"),
             (tf.function(lambda x: x), {}, "OT1622")]
    for source, more, code in cases:
        with pytest.raises(ot.Error) as e:
            ot.from_tf(source, **more)
        assert e.value.code == code, str(e.value)


def test_nothing_of_the_module_changes():
    net = Net()
    before = [v.numpy() for v in net.variables]
    ot.from_tf(net, "__call__")
    for a, v in zip(before, net.variables):
        np.testing.assert_array_equal(a, v.numpy())


class Dense(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.ones((3, 2)), name="w")

    @tf.function(input_signature=[tf.TensorSpec((None, 3), tf.float32)])
    def __call__(self, x):
        return tf.matmul(x, self.w)


def test_damaged_saved_models(tmp_path):
    """One error of ours each, nothing of TensorFlow's."""
    tf.saved_model.save(Dense(), str(tmp_path / "good"))
    graph = (tmp_path / "good" / "saved_model.pb").read_bytes()
    changes = {"unknown operation": graph.replace(b"MatMul", b"XatMul"), "cut": graph[:len(graph) // 2],
               "empty": b"", "noise": b"\xff" * 1000}
    for name, data in changes.items():
        shutil.copytree(tmp_path / "good", tmp_path / name)
        (tmp_path / name / "saved_model.pb").write_bytes(data)
    for name in ("cut variables", "no index"):
        shutil.copytree(tmp_path / "good", tmp_path / name)
    os.truncate(tmp_path / "cut variables" / "variables" / "variables.data-00000-of-00001", 3)
    os.unlink(tmp_path / "no index" / "variables" / "variables.index")
    for name in [*changes, "cut variables", "no index"]:
        with pytest.raises(ot.ModelError) as e:
            ot.from_tf(str(tmp_path / name))
        assert e.value.code == "OT1621", name
    assert ot.from_tf(str(tmp_path / "good")).inputs == ["x"]


class Ragged(tf.Module):
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
    def __call__(self, x):
        return tf.reduce_sum(x, 1)


def test_a_ragged_argument():
    with pytest.raises(ot.ModelError, match="RaggedTensor") as e:
        ot.from_tf(Ragged())
    assert e.value.code == "OT1622"


class Fused(tf.Module):
    """TensorFlow's kernel has no gradient by statistics that are given."""

    def __init__(self):
        super().__init__()
        self.g = tf.Variable(tf.ones(2), name="g")
        self.mean = tf.Variable([0.3, -0.2], trainable=False, name="mean")
        self.variance = tf.Variable([1.5, 0.7], trainable=False, name="variance")

    @tf.function(input_signature=[tf.TensorSpec((None, 4, 4, 2), tf.float32)])
    def __call__(self, x):
        return tf.compat.v1.nn.fused_batch_norm(x, self.g, tf.zeros(2), self.mean, self.variance, is_training=False)[0]


def test_gradients_of_what_is_trained_are_compared():
    model = ot.from_tf(Fused())
    assert {"g", "mean", "variance"} <= {n.split(":")[0] for n in model.parameters}


def test_a_gradient_of_ones_own_is_named():
    w = tf.Variable([1.5, -0.3], name="w")

    @tf.custom_gradient
    def rounded(x):
        return tf.round(x), lambda d: d

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
    def call(x):
        return rounded(x * w)

    with pytest.raises(ot.ModelError, match="gradient of its own"):
        ot.from_tf(call, inputs=np.ones((2, 2), np.float32))


def test_what_tensorflow_does_not_differentiate_is_said():
    w = tf.Variable(np.ones((3, 3, 1, 1), np.float32), name="w")

    @tf.function(input_signature=[tf.TensorSpec([None, 6, 6, 1], tf.float32, "x")])
    def call(x):
        return tf.image.adjust_contrast(tf.nn.conv2d(x, w, 1, "SAME"), 1.5)

    with pytest.warns(UserWarning, match="cannot compute the gradient.*not compared"):
        ot.from_tf(call, inputs=np.random.default_rng(0).normal(size=(2, 6, 6, 1)).astype(np.float32))
