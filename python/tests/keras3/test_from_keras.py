"""from_keras and to_keras: every conversion is compared with Keras by the converter itself; here also trajectories,
names, layout, and that nothing of the user's changes."""

import json

import keras
import numpy as np
import pytest

import onnxtrain as ot
import round_trip as trips
from onnxtrain.graph import read_graphs

# a model, an optimizer, whether the original gets the state (own classes have no config)
TRIPS = [("mlp", "adam", False), ("bag_of_words", "adam", False), ("cnn_batchnorm", "momentum", False),
         ("residual", "nadam", False), ("lstm_masked_left", "rmsprop", False), ("own_layers", "ftrl", True),
         ("two_in_two_out", "accumulation", False), ("constrained", "exponential", False),
         ("regularized", "ema_overwrite", True), ("mlp_logits", "global_clipnorm", False)]
IMAGE = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "BatchNormalization", "Relu", "Add", "Mul", "Concat", "Pad"}


@pytest.mark.parametrize("model, optimizer, into", TRIPS)
def test_round_trip(model, optimizer, into):
    difference, what, noise = trips.round_trip(model, optimizer, into)
    limit = max(trips.LIMIT, trips.SPREAD * (noise or 0))
    assert difference <= limit, f"{what}: {difference:.3g}, Keras' own noise {noise}"


def converted(name, optimizer="adam"):
    model, x, y = trips.fresh(name, optimizer)
    return model, x, y, ot.from_keras(model, x, y)


@pytest.mark.parametrize("name", ["cnn_same", "separable", "autoencoder"])
def test_no_transpose_between_image_operators(name):
    *_, file = converted(name)
    nodes = read_graphs(file).main.nodes
    made = {o: n for n in nodes for o in n.outputs}
    readers = {}
    for n in nodes:
        for v in n.inputs:
            readers.setdefault(v, []).append(n)
    turns = [n for n in nodes if n.op == "Transpose"]
    between = [n for n in turns if n.inputs[0] in made and made[n.inputs[0]].op in IMAGE
               and any(r.op in IMAGE for r in readers.get(n.outputs[0], []))]
    assert not between
    assert len(turns) <= 2  # behind the input, in front of the output


def test_names_state_and_weights():
    model, x, y = trips.fresh("nested", "adam")
    trips.train(model, x, y, 3)
    file = ot.from_keras(model, x, y)
    names = list(file.parameters)
    assert "first/d/kernel" in names and "second/d/kernel" in names  # v.path, unique by the nested model
    assert ot.Trainer(file).lr == pytest.approx(0.01)
    assert int(np.asarray(ot.Trainer(file).state["T"])) == 3
    for a, b in zip(ot.keras_weights(file), model.get_weights()):
        assert np.array_equal(a, b)
    info = json.loads(read_graphs(file).metadata["onnxtrain.keras"])
    assert info["semantics"] == "tensorflow" and info["optimizer"]["class"] == "Adam"


def test_nothing_of_the_model_changes():
    model, x, y = trips.fresh("cnn_batchnorm", "adam")
    before = model.get_weights()
    nodes = [len(layer._inbound_nodes) for layer in model.layers]
    ot.from_keras(model, x, y)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights()))
    assert not model.optimizer.built
    assert [len(layer._inbound_nodes) for layer in model.layers] == nodes
    trips.train(model, x, y, 1)


def test_random_layers_are_live():
    """Dropout and augmentation draw anew in each step, and differ from seed to seed."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.RandomFlip(), keras.layers.GaussianNoise(0.3),
                              keras.layers.Conv2D(4, 3), keras.layers.SpatialDropout2D(0.4), keras.layers.Flatten(),
                              keras.layers.Dropout(0.5), keras.layers.Dense(2)])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    x, y = np.random.default_rng(0).standard_normal((6, 8, 8, 3)).astype(np.float32), np.zeros((6, 2), np.float32)
    file = ot.from_keras(model, x, y)
    losses = [ot.Trainer(file, seed=s).step({file.inputs[0]: x, "target": y}).loss for s in (0, 0, 1)]
    assert losses[0] == losses[1] != losses[2]
    got = ot.Session(file).run({file.inputs[0]: x})[file.outputs[0]]
    assert np.allclose(got, model.predict(x, verbose=0), atol=1e-5)


def test_sample_weight_is_an_input():
    model, x, y = trips.fresh("mlp", "sgd")
    weights = np.linspace(0, 2, len(x)).astype(np.float32)
    file = ot.from_keras(model, x, y, sample_weight=weights)
    trainer = ot.Trainer(file)
    assert "sample_weight" in trainer.targets
    loss = trainer.step({file.inputs[0]: x, "target": y, "sample_weight": weights}).loss
    assert loss == pytest.approx(float(model.train_on_batch(x, y, sample_weight=weights)), rel=1e-5)


def test_semantics_are_told_apart():
    """Repeated ids: TensorFlow squares each occurrence, JAX and PyTorch their sum."""
    model, x, y = trips.fresh("bag_of_words", "adam")
    trips.train(model, x, y, 1)
    moved = []
    for semantics in ("tensorflow", "dense"):
        try:
            trainer = ot.Trainer(ot.from_keras(model, x, y, semantics=semantics))
        except ot.ModelError as e:  # the self-check runs in TensorFlow
            assert semantics == "dense" and e.code == "OT1605"
            return
        trainer.step(trips.feeds(trainer, x, y))
        moved.append(np.asarray(next(trainer.state[n] for n in trainer.state if n.endswith("/embeddings"))))
    assert np.abs(moved[0] - moved[1]).max() > 1e-4


def test_inference_only():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="relu")])
    file = ot.from_keras(model)
    assert not file.trainable
    x = np.ones((2, 4), np.float32)
    assert np.allclose(ot.Session(file).run({file.inputs[0]: x})[file.outputs[0]], model.predict(x, verbose=0))


def test_into_refuses_another_optimizer():
    model, x, y, file = converted("mlp")
    model.compile("sgd", "mse")
    before = model.get_weights()
    with pytest.raises(ot.UsageError, match="compiled with SGD"):
        ot.to_keras(file, into=model)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights()))
