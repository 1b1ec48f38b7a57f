"""Augmentation layers stay live: the same distribution, and exactly Keras' images when chance is taken away."""

import random

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers as L
from keras import ops

import onnxtrain as ot

RNG = np.random.default_rng(1)
IMAGES = RNG.uniform(0, 1, (3, 7, 5, 3)).astype(np.float32)
TARGETS = np.zeros((3, 2), np.float32)


def converted(*layers, images=IMAGES, targets=TARGETS):
    """The self-check compares images at one place of every range, off the middle."""
    model = keras.Sequential([keras.Input(images.shape[1:]), *layers, L.Flatten(), L.Dense(2)])
    return trains(model, images, targets)


def trains(model, x, y, loss="mse"):
    """Whether the file is what Keras computes (from_keras compares them), and a step of it runs."""
    model.compile("sgd", loss)
    file = ot.from_keras(model, x, y)
    return np.isfinite(ot.Trainer(file, seed=1).step({file.inputs[0]: x, "target": y}).loss)


@pytest.mark.parametrize("mode", ["constant", "nearest", "reflect", "wrap"])
@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
def test_affine_layers(mode, interpolation):
    how = {"fill_mode": mode, "interpolation": interpolation, "fill_value": 0.7}
    assert converted(L.RandomRotation((-0.3, 0.4), **how), L.RandomZoom((-0.5, 0.2), (-0.4, 0.6), **how))
    assert converted(L.RandomTranslation((-0.9, 0.7), (-0.8, 0.5), **how), L.RandomShear(0.4, 0.3, **how))


def test_affine_layers_with_channels_first():
    images = IMAGES.transpose(0, 3, 1, 2).copy()
    assert converted(L.RandomRotation((0.1, 0.2), data_format="channels_first"), images=images)


class Moved(L.Layer):
    """A transform of one's own, with perspective: TensorFlow's kernel divides by it."""

    def __init__(self, mode):
        super().__init__()
        self.mode = mode

    def call(self, x):
        numbers = np.random.default_rng(5).normal(size=(3, 8)) * [1, 1, 6, 1, 1, 6, 0, 0]
        numbers[:, 6:] = 0.05, 0.02
        return ops.image.affine_transform(x, numbers.astype(np.float32), fill_mode=self.mode, fill_value=0.7)


@pytest.mark.parametrize("mode", ["constant", "nearest", "reflect", "wrap"])
def test_places_far_outside(mode):
    assert converted(Moved(mode))


@pytest.mark.parametrize("layer", [
    lambda: L.RandomHue(0.4, (0, 1)), lambda: L.RandomSaturation(0.6, (0, 1)),
    lambda: L.RandomColorDegeneration(0.7, (0, 1)), lambda: L.RandomGaussianBlur(1.0, (3, 3), (0.5, 1.5), (0, 1)),
    lambda: L.Solarization(0.5, 0.4, (0, 1)), lambda: L.RandomContrast(0.4, (0, 1))])
def test_colours(layer):
    assert converted(layer())


def test_a_shift_is_uniform():
    """The centre of one bright pixel moves by as much as Keras says, in both directions."""
    images = np.zeros((200, 9, 9, 1), np.float32)
    images[:, 4, 4] = 1
    weight = np.zeros((81, 2), np.float32)
    weight[:, 0], weight[:, 1] = np.repeat(np.arange(9), 9), np.tile(np.arange(9), 9)
    model = keras.Sequential([keras.Input((9, 9, 1)), L.RandomTranslation(0.3, 0.2), L.Flatten(),
                              L.Dense(2, use_bias=False)])
    model.layers[-1].set_weights([weight])
    model.compile("sgd", "mse")
    file = ot.from_keras(model, images, np.zeros((200, 2), np.float32))
    step = ot.Trainer(file, seed=3).step({file.inputs[0]: images, "target": np.zeros((200, 2), np.float32)})
    moved = next(v for n, v in step.outputs.items() if n.endswith("_train")) - 4.0
    assert np.abs(moved[:, 0]).max() <= 2.7 and np.abs(moved[:, 1]).max() <= 1.8
    for k, size in enumerate((2.7, 1.8)):
        line = np.sort(moved[:, k]) / (2 * size) + 0.5
        distance = np.abs(line - (np.arange(200) + 0.5) / 200).max()
        assert distance < 1.63 / np.sqrt(200), "not uniform (Kolmogorov-Smirnov at 1 %)"


@pytest.mark.parametrize("size", [(13, 4), (14, 10), (3, 2), (7, 11)])
def test_nearest_pixels(size):
    assert converted(L.Conv2D(2, 1), L.Resizing(*size, interpolation="nearest"))


def test_a_crop_of_larger_images():
    """In inference RandomCrop leaves the size as it is, so that the network must take any."""
    layers = [L.RandomCrop(4, 3), L.Conv2D(3, 2), L.GlobalMaxPooling2D()]
    model = keras.Sequential([keras.Input(IMAGES.shape[1:]), *layers, L.Dense(2)])
    assert trains(model, IMAGES, TARGETS)


def test_behind_trained_weights_tensorflow_has_no_derivative():
    with pytest.raises(ot.ModelError, match="inverse") as e:
        converted(L.Conv2D(3, 1), L.RandomRotation(0.1))
    assert e.value.code == "OT1601" and "random_rotation" in str(e.value)


class Thrown(L.Layer):
    def call(self, x):
        return x * random.random() + np.random.rand()


def test_random_numbers_of_python_are_refused():
    with pytest.raises(ot.ModelError, match="random numbers of Python") as e:
        converted(Thrown())
    assert e.value.code == "OT1601"


@pytest.mark.parametrize("layer", [lambda: L.RandomPerspective(), lambda: L.RandomElasticTransform(1.0),
                                   lambda: L.AugMix((0, 1)), lambda: L.RandomErasing()])
def test_refused_by_name(layer):
    with pytest.raises(ot.ModelError) as e:
        converted(layer())
    assert e.value.code == "OT1601" and type(layer()).__name__ in str(e.value)


def test_a_count_and_several_ones_of_categories():
    tokens = RNG.integers(0, 5, (4, 3)).astype(np.int32)
    for mode in ("multi_hot", "count"):
        layers = [L.CategoryEncoding(5, output_mode=mode), L.Dense(2)]
        model = keras.Sequential([keras.Input((3,), dtype="int32"), *layers])
        assert trains(model, tokens, np.zeros((4, 2), np.float32))


class Narrow(L.Layer):
    def call(self, x):
        return ops.cast(ops.saturate_cast(x * 1000, "uint8"), "float32") + ops.cast(
            ops.saturate_cast(x * 1e12, "int32"), "float32") * 1e-9


def test_saturating_casts():
    model = keras.Sequential([keras.Input((4,)), Narrow(), L.Dense(2)])
    assert trains(model, np.array([[-1, 0, 0.1, 3]] * 3, np.float32), TARGETS)


class Counter(L.Layer):
    def build(self, shape):
        self.seen = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def call(self, x):
        self.seen.assign(self.seen + 1.0)
        return x / self.seen


def test_a_layer_that_counts_in_inference_too():
    model = keras.Sequential([keras.Input((4,)), L.Dense(3), Counter(), L.Dense(2)])
    assert trains(model, RNG.standard_normal((3, 4)).astype(np.float32), TARGETS)


@pytest.mark.parametrize("layer", ["selu", "gelu", "leaky_relu"])
def test_activations_in_float64(layer):
    if layer == "gelu" and tf.__version__.startswith("2.18"):
        pytest.skip("TensorFlow 2.18 rounds another number of gelu to float32: refused")
    wide = {"dtype": "float64"}
    model = keras.Sequential([keras.Input((4,), **wide), L.Dense(3, layer, **wide), L.Dense(2, **wide)])
    loss = keras.losses.MeanSquaredError(dtype="float64")
    assert trains(model, RNG.standard_normal((3, 4)), TARGETS, loss)


def test_nothing_to_train():
    model = keras.Sequential([keras.Input((2,)), L.LeakyReLU()])
    model.compile("sgd", "mse")
    with pytest.raises(ot.UsageError) as e:
        ot.from_keras(model, TARGETS, TARGETS)
    assert e.value.code == "OT1609"


class Pooled(L.Layer):
    """Sums over groups of rows, some of them outside of all groups; patches of images."""

    def call(self, x):
        patches = ops.image.extract_patches(x, (2, 2), strides=1)
        sums = ops.segment_sum(ops.reshape(patches, (-1, 12)), np.arange(-2, 70, dtype=np.int32), num_segments=70)
        return ops.mean(patches, axis=(1, 2)) + ops.mean(sums, axis=0)


def test_patches_and_segments():
    model = keras.Sequential([keras.Input(batch_shape=(3, 7, 5, 3)), L.Conv2D(3, 1), Pooled(), L.Dense(2)])
    assert trains(model, IMAGES, TARGETS)
