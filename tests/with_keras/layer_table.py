"""Layers one by one: from_keras compares each with Keras, or refuses it by name.

    .venv-tf/bin/python tests/with_keras/layer_table.py [NAME...]
"""

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers as L  # noqa: E402
from keras import ops  # noqa: E402

import onnxtrain as ot  # noqa: E402

V, S, I1, I2, I3 = (6,), (5, 4), (9, 3), (8, 8, 3), (5, 5, 5, 2)
REFUSED = {"RandomPerspective", "Equalization", "RandomElasticTransform", "MelSpectrogram", "STFTSpectrogram",
           "AutoContrast", "RandomErasing", "AugMix", "RandAugment", "MixUp", "CutMix",
           "AdaptiveAveragePooling2D", "RandomPosterization"}
AUGMENTATIONS = {"RandomRotation", "RandomZoom", "RandomTranslation", "RandomShear", "RandomBrightness",
                 "RandomColorJitter"}  # in front of weights
CASES = {
    **{f"Activation {a}": (V, lambda a=a: L.Activation(a)) for a in (
        "relu", "relu6", "sigmoid", "tanh", "softmax", "softplus", "softsign", "selu", "elu", "exponential", "gelu",
        "silu", "hard_sigmoid", "hard_silu", "leaky_relu", "log_sigmoid", "log_softmax", "mish", "celu",
        "hard_tanh", "hard_shrink", "soft_shrink", "tanh_shrink", "squareplus", "sparse_plus", "linear")},
    "EinsumDense": (S, lambda: L.EinsumDense("abc,cd->abd", (5, 6), bias_axes="d")),
    "PReLU shared": (I2, lambda: L.PReLU(shared_axes=[1, 2])),
    "ReLU threshold": (V, lambda: L.ReLU(2.0, 0.1, 0.2)),
    "Softmax axis": (I2, lambda: L.Softmax(axis=[1, 2])),
    "BatchNormalization axis 1": (I2, lambda: L.BatchNormalization(axis=1)),
    "BatchNormalization vector": (V, lambda: L.BatchNormalization(center=False)),
    "LayerNormalization axes": (I2, lambda: L.LayerNormalization(axis=[1, 3])),
    "LayerNormalization rms": (S, lambda: L.RMSNormalization()),
    "GroupNormalization": (I2, lambda: L.GroupNormalization(3)),
    "UnitNormalization": (S, lambda: L.UnitNormalization(axis=1)),
    "Conv1D": (I1, lambda: L.Conv1D(4, 3, 2, "same")),
    "Conv2D groups": (I2, lambda: L.Conv2D(6, 3, groups=3)),
    "Conv2D first": (I2, lambda: L.Conv2D(4, (2, 3), (1, 2), dilation_rate=1, padding="same")),
    "Conv3D": (I3, lambda: L.Conv3D(3, 2, 2, "same")),
    "DepthwiseConv1D": (I1, lambda: L.DepthwiseConv1D(3, depth_multiplier=2)),
    "DepthwiseConv2D": (I2, lambda: L.DepthwiseConv2D(3, 2, "same", 2)),
    "SeparableConv1D": (I1, lambda: L.SeparableConv1D(4, 3)),
    "Conv1DTranspose": (I1, lambda: L.Conv1DTranspose(4, 3, 2, "same")),
    "Conv2DTranspose": (I2, lambda: L.Conv2DTranspose(4, 3, 2, "same")),
    "Conv2DTranspose wide": (I2, lambda: L.Conv2DTranspose(4, 2, 3, "same")),
    "Conv2DTranspose valid": (I2, lambda: L.Conv2DTranspose(4, 5, 2, "valid")),
    "Conv2DTranspose padded": (I2, lambda: L.Conv2DTranspose(4, 3, 2, "same", output_padding=1)),
    "Conv2DTranspose dilated": (I2, lambda: L.Conv2DTranspose(4, 3, 1, "same", dilation_rate=2)),
    "Conv3DTranspose": (I3, lambda: L.Conv3DTranspose(3, 3, 2, "same")),
    "MaxPooling1D": (I1, lambda: L.MaxPooling1D(3, 2, "same")),
    "AveragePooling2D": (I2, lambda: L.AveragePooling2D(3, 2, "same")),
    "AveragePooling3D": (I3, lambda: L.AveragePooling3D(2)),
    "GlobalMaxPooling1D": (I1, lambda: L.GlobalMaxPooling1D()),
    "GlobalAveragePooling2D kept": (I2, lambda: L.GlobalAveragePooling2D(keepdims=True)),
    "AdaptiveAveragePooling2D": (I2, lambda: L.AdaptiveAveragePooling2D(4)) if hasattr(L, "AdaptiveAveragePooling2D")
    else (I2, lambda: L.AveragePooling2D()),
    "UpSampling1D": (I1, lambda: L.UpSampling1D(3)),
    "UpSampling2D": (I2, lambda: L.UpSampling2D((2, 3))),
    "UpSampling2D bicubic": (I2, lambda: L.UpSampling2D(2, interpolation="bicubic")),
    "UpSampling3D": (I3, lambda: L.UpSampling3D(2)),
    "ZeroPadding1D": (I1, lambda: L.ZeroPadding1D((1, 2))),
    "ZeroPadding3D": (I3, lambda: L.ZeroPadding3D(1)),
    "Cropping1D": (I1, lambda: L.Cropping1D((1, 2))),
    "Cropping3D": (I3, lambda: L.Cropping3D(1)),
    "Reshape": (V, lambda: L.Reshape((-1, 2))),
    "Permute": (I2, lambda: L.Permute((3, 1, 2))),
    "RepeatVector": (V, lambda: L.RepeatVector(3)),
    "Flatten": (I2, lambda: L.Flatten()),
    "TimeDistributed": (S, lambda: L.TimeDistributed(L.Dense(3, activation="relu"))),
    "SimpleRNN": (S, lambda: L.SimpleRNN(3, activation="sigmoid", go_backwards=True)),
    "LSTM relu": (S, lambda: L.LSTM(3, activation="relu", recurrent_activation="hard_sigmoid")),
    "LSTM dropout": (S, lambda: L.LSTM(3, dropout=0.3, recurrent_dropout=0.2)),
    "LSTM unroll": (S, lambda: L.LSTM(3, unroll=True)),
    "GRU no bias": (S, lambda: L.GRU(3, use_bias=False, return_sequences=True)),
    "Bidirectional concat": (S, lambda: L.Bidirectional(L.SimpleRNN(3, return_sequences=True))),
    "ConvLSTM1D": ((3, 6, 2), lambda: L.ConvLSTM1D(3, 2, padding="same", return_sequences=True)),
    "MultiHeadAttention": (S, lambda: Self(L.MultiHeadAttention(2, 3, value_dim=5, dropout=0.1))),
    "GroupQueryAttention": (S, lambda: Self(L.GroupQueryAttention(4, 4, 2))),
    "Attention causal": (S, lambda: Pair(L.Attention(use_scale=True, dropout=0.2), use_causal_mask=True)),
    "AdditiveAttention": (S, lambda: Pair(L.AdditiveAttention())),
    "Dropout": (S, lambda: L.Dropout(0.4, noise_shape=(None, 1, 4))),
    "AlphaDropout": (V, lambda: L.AlphaDropout(0.3)),
    "GaussianDropout": (V, lambda: L.GaussianDropout(0.3)),
    "GaussianNoise": (V, lambda: L.GaussianNoise(0.3)),
    "SpatialDropout1D": (S, lambda: L.SpatialDropout1D(0.3)),
    "ActivityRegularization": (V, lambda: L.ActivityRegularization(0.1, 0.2)),
    "SpectralNormalization": (I2, lambda: L.SpectralNormalization(L.Conv2D(3, 2))),
    "Rescaling": (I2, lambda: L.Rescaling([1.0, 2.0, 3.0], [0.1, 0.2, 0.3])),
    "Resizing": (I2, lambda: L.Resizing(5, 11)),
    "Resizing nearest": (I2, lambda: L.Resizing(13, 4, interpolation="nearest")),
    "CenterCrop": (I2, lambda: L.CenterCrop(5, 6)),
    "Normalization": (V, lambda: L.Normalization(mean=[1.0] * 6, variance=[2.0] * 6)),
    "Discretization": (V, lambda: L.Discretization([-1.0, 0.0, 1.0])),
    "RandomFlip": (I2, lambda: L.RandomFlip("horizontal")),
    "RandomCrop": (I2, lambda: L.RandomCrop(8, 8)),  # smaller ones: Keras' inference leaves the size as it is
    "RandomContrast": (I2, lambda: L.RandomContrast(0.3)),
    "RandomBrightness": (I2, lambda: L.RandomBrightness(0.3, (0.0, 1.0))),
    "RandomInvert": (I2, lambda: L.RandomInvert(0.5, (0, 1))),
    "RandomGrayscale": (I2, lambda: L.RandomGrayscale(0.5)),
    "RandomPosterization": (I2, lambda: L.RandomPosterization(3)),
    "RandomSharpness": (I2, lambda: L.RandomSharpness(0.5, (0, 1))),
    "RandomRotation": (I2, lambda: L.RandomRotation(0.1)),
    "RandomZoom": (I2, lambda: L.RandomZoom(0.1)),
    "RandomTranslation": (I2, lambda: L.RandomTranslation(0.1, 0.1)),
    "RandomShear": (I2, lambda: L.RandomShear(0.2, 0.3)),
    "RandomColorDegeneration": (I2, lambda: L.RandomColorDegeneration(0.5, (0, 1))),
    "RandomColorJitter": (I2, lambda: L.RandomColorJitter((0, 1), 0.2, 0.2, 0.2, 0.2)),
    "RandomGaussianBlur": (I2, lambda: L.RandomGaussianBlur(1.0, 3, 1.0, (0, 1))),
    "RandomPerspective": (I2, lambda: L.RandomPerspective()),
    "RandomElasticTransform": (I2, lambda: L.RandomElasticTransform(1.0, 1.0, value_range=(0, 1))),
    "AutoContrast": (I2, lambda: L.AutoContrast((0, 1))),
    "Equalization": (I2, lambda: L.Equalization((0, 1))),
    "AugMix": (I2, lambda: L.AugMix((0, 1))),
    "RandAugment": (I2, lambda: L.RandAugment((0, 1))),
    "MixUp": (I2, lambda: L.MixUp()),
    "CutMix": (I2, lambda: L.CutMix()),
    "RandomHue": (I2, lambda: L.RandomHue(0.1, (0, 1))),
    "RandomSaturation": (I2, lambda: L.RandomSaturation(0.3, (0, 1))),
    "RandomErasing": (I2, lambda: L.RandomErasing()),
    "Solarization": (I2, lambda: L.Solarization()),
    "STFTSpectrogram": ((64, 1), lambda: L.STFTSpectrogram(frame_length=16)),
}


class Self(L.Layer):
    """A layer of two tensors on one."""

    def __init__(self, layer, **kw):
        super().__init__()
        self.layer, self.kw = layer, kw

    def build(self, shape):
        self.layer.build(shape, shape)

    def call(self, x, training=None):
        return self.layer(x, x, training=training, **self.kw)


class Pair(Self):
    def build(self, shape):
        self.layer.build([shape, shape])

    def call(self, x, training=None):
        return self.layer([ops.tanh(x), x], training=training, **self.kw)


def try_one(name):
    shape, make = CASES[name]
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    inputs = keras.Input(shape)
    first = inputs if name in AUGMENTATIONS else L.Dense(shape[-1])(inputs)
    y = make()(first)
    if not keras.backend.is_float_dtype(y.dtype):
        y = L.Concatenate()([L.Rescaling(1.0)(y), first])
    model = keras.Model(inputs, L.Dense(2)(L.Flatten()(y)))
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "mse")
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0.1, 1, (4, *shape)).astype(np.float32), rng.standard_normal((4, 2)).astype(np.float32)
    return ot.from_keras(model, x, t)


def main(names):
    good, refused, bad = 0, [], []
    for name in names:
        start = time.time()
        try:
            try_one(name)
            good += 1
            how = "ok"
        except ot.Error as e:
            how = str(e).replace("\n", " ")[:300]
            (refused if e.code == "OT1601" and name.split()[0] in REFUSED else bad).append(name)
        except Exception as e:  # noqa: BLE001 - the table goes on
            how = f"FAILED {type(e).__name__}: {e}"[:300].replace("\n", " ")
            bad.append(name)
        print(f"{name:28s}{how}  {time.time() - start:.1f} s", flush=True)
    print(f"{len(names)} layers: {good} converted, {len(refused)} refused by name, {len(bad)} not: {bad}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(CASES)))
