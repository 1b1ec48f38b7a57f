"""Losses with dropout and augmentation over many seeds, in Keras and here: two-sample Kolmogorov-Smirnov test.

    .venv-tf/bin/python tests/with_keras/random_layers.py [SEEDS] [NAME...]

Seventeen augmentations and three networks with dropout; one in a thousand of right ones would be below 0.001 by chance.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers as L  # noqa: E402

import onnxtrain as ot  # noqa: E402


def dropout():
    return keras.Sequential([keras.Input((6, 6, 2)), L.Conv2D(4, 3, activation="relu"), L.SpatialDropout2D(0.3),
                             L.Flatten(), L.Dropout(0.5), L.Dense(3, activation="softmax")])


def augmented():
    return keras.Sequential([keras.Input((6, 6, 2)), L.RandomFlip(), L.GaussianNoise(0.4),
                             L.RandomBrightness(0.3, (-2, 2)), L.Conv2D(4, 3), L.GaussianDropout(0.3), L.Flatten(),
                             L.Dense(3, activation="softmax")])


def image(layer):
    """An augmentation in front of a small network. In inference RandomCrop leaves the size as it is."""
    def make():
        made = layer()
        end = [L.GlobalMaxPooling2D() if isinstance(made, L.RandomCrop) else L.Flatten()]
        return keras.Sequential([keras.Input((6, 6, 3)), L.Rescaling(0.2, 0.5), made,
                                 L.Conv2D(4, 3, activation="relu"), *end, L.Dense(3, activation="softmax")])

    return make


AUGMENTATIONS = {
    "rotation": image(lambda: L.RandomRotation(0.2)),
    "zoom": image(lambda: L.RandomZoom(0.4, 0.3, fill_mode="nearest")),
    "translation": image(lambda: L.RandomTranslation(0.4, 0.3, fill_mode="wrap")),
    "shear": image(lambda: L.RandomShear(0.5, 0.5, fill_mode="constant")),
    "contrast": image(lambda: L.RandomContrast(0.8, (0, 1))),
    "brightness": image(lambda: L.RandomBrightness(0.6, (0, 1))),
    "flip": image(lambda: L.RandomFlip()),
    "crop": image(lambda: L.RandomCrop(4, 4)),
    "hue": image(lambda: L.RandomHue(0.8, (0, 1))),
    "saturation": image(lambda: L.RandomSaturation(0.9, (0, 1))),
    "degeneration": image(lambda: L.RandomColorDegeneration(0.9, (0, 1))),
    "blur": image(lambda: L.RandomGaussianBlur(0.7, 3, (0.3, 2.0), (0, 1))),
    "solarization": image(lambda: L.Solarization(0.4, 0.8, (0, 1))),
    "sharpness": image(lambda: L.RandomSharpness(0.9, (0, 1))),
    "invert": image(lambda: L.RandomInvert(0.6, (0, 1))),
    "grayscale": image(lambda: L.RandomGrayscale(0.5)),
    "noise": image(lambda: L.GaussianNoise(0.3)),
}


def recurrent():
    return keras.Sequential([keras.Input((6, 12)), L.LSTM(6, dropout=0.4, recurrent_dropout=0.3), L.AlphaDropout(0.2),
                             L.Dense(3, activation="softmax")])


def p_value(a, b):
    """Kolmogorov's distribution of the largest distance between two empirical ones."""
    points = np.sort(np.concatenate([a, b]))
    distance = np.abs(np.searchsorted(np.sort(a), points, "right") / len(a)
                      - np.searchsorted(np.sort(b), points, "right") / len(b)).max()
    n = len(a) * len(b) / (len(a) + len(b))
    z = (np.sqrt(n) + 0.12 + 0.11 / np.sqrt(n)) * distance
    k = np.arange(1, 101)
    return float(np.clip(2 * ((-1) ** (k - 1) * np.exp(-2 * k * k * z * z)).sum(), 0, 1)) if z > 0.2 else 1.0


def losses(make, seeds):
    rng = np.random.default_rng(0)
    model = make()
    x = rng.standard_normal((16, *model.input_shape[1:])).astype(np.float32)
    y = rng.integers(0, 3, 16)
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "sparse_categorical_crossentropy")
    start = model.get_weights()
    file = ot.from_keras(model, x, y)
    there, here = [], []
    for seed in range(seeds):
        model.set_weights(start)
        for v in model.optimizer.variables if model.optimizer.built else ():
            if v is not model.optimizer._learning_rate:
                v.assign(np.zeros(v.shape))
        model.reset_metrics()
        there.append([float(np.asarray(model.train_on_batch(x, y)).reshape(-1)[0]) for _ in range(3)][-1])
        trainer = ot.Trainer(file, seed=seed)
        here.append([trainer.step({file.inputs[0]: x, "target": y}).loss for _ in range(3)][-1])
        model.reset_metrics()
    return np.array(there), np.array(here)


if __name__ == "__main__":
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    worst, cases = 1.0, {"dropout": dropout, "augmented": augmented, "recurrent": recurrent, **AUGMENTATIONS}
    for name in sys.argv[2:] or cases:
        keras.backend.clear_session()
        keras.utils.set_random_seed(1)
        there, here = losses(cases[name], seeds)
        p = p_value(there, here)
        worst = min(worst, p)
        print(f"{name:14s}third loss over {seeds} seeds: Keras {there.mean():.4f} +- {there.std():.4f}, here "
              f"{here.mean():.4f} +- {here.std():.4f}, p = {p:.2f}", flush=True)
    sys.exit(worst < 0.001)
