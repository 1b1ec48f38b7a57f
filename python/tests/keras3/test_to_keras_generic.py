"""Files that did not come from Keras: a model over the graph continues the file's training with the file's rule."""

import keras
import numpy as np
import pytest

import onnxtrain as ot
import round_trip as trips

RNG = np.random.default_rng(3)


def tensor(name, *shape):
    values = ",".join(repr(float(v)) for v in (RNG.standard_normal(shape) * 0.4).astype(np.float32).ravel())
    return f"float[{','.join(map(str, shape))}] {name} = {{{values}}}"


def cnn():
    return ot.parse(f"""<ir_version: 10, opset_import: ["": 22]> g (float[N,2,9,9] image) => (float[N,3] scores)
        <{tensor("conv_weight", 4, 2, 3, 3)}, {tensor("bn_scale", 4)}, {tensor("bn_bias", 4)},
         float[4] bn_mean = {{0,0,0,0}}, float[4] bn_var = {{1,1,1,1}}, {tensor("head_weight", 64, 3)},
         {tensor("head_bias", 3)}> {{
        c = Conv <strides = [1, 1], pads = [1, 1, 1, 1]> (image, conv_weight)
        b = BatchNormalization (c, bn_scale, bn_bias, bn_mean, bn_var)
        r = Relu (b)
        p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
        f = Flatten (p)
        scores = Gemm (f, head_weight, head_bias) }}""")


@pytest.mark.parametrize("optimizer", [ot.Adam(lr=0.01), ot.SGD(lr=0.05, momentum=0.9), ot.AdamW(lr=0.01)])
def test_training_continues(optimizer):
    x = RNG.standard_normal((8, 2, 9, 9)).astype(np.float32)
    y = RNG.integers(0, 3, 8)
    trainer = ot.Trainer(ot.prepare(cnn(), loss="cross_entropy", optimizer=optimizer))
    trainer.step({"image": x, "label": y})
    model = ot.to_keras(trainer)
    images = x.transpose(0, 2, 3, 1)  # channels last, as Keras has them
    session = ot.Session(trainer.model())
    assert np.allclose(model.predict(images, verbose=0), session.run({"image": x})["scores"], atol=1e-5)
    want = [trainer.step({"image": x, "label": y}).loss for _ in range(4)]
    got = trips.train(model, images, y, 4)
    assert got == pytest.approx(want, rel=2e-4)
    for v in model.weights:
        name = model.file_names[v.path]
        assert np.allclose(keras.ops.convert_to_numpy(v), trainer.state[name], atol=2e-4), name


def test_channels_first():
    file = cnn()
    model = ot.to_keras(file, data_format="channels_first")
    x = RNG.standard_normal((4, 2, 9, 9)).astype(np.float32)
    assert np.allclose(model.predict(x, verbose=0), ot.Session(file).run({"image": x})["scores"], atol=1e-5)


def test_refused_by_name():
    model = ot.parse("""<ir_version: 10, opset_import: ["": 22]> g (float[N,4] x) => (float[N,4] y)
        { y = Hardmax (x) }""")
    with pytest.raises(ot.ModelError, match="Hardmax") as e:
        ot.to_keras(model)
    assert e.value.code == "OT1711"


def test_evaluate_is_the_inference_form():
    """It changes no statistics; weights of rows, which the file's loss does not have, are refused."""
    model = ot.to_keras(ot.prepare(cnn(), loss="cross_entropy", optimizer=ot.SGD(lr=0.1)))
    x, y = RNG.standard_normal((8, 9, 9, 2)).astype(np.float32), RNG.integers(0, 3, 8)
    before = model.get_weights()
    scores = model.predict(x, verbose=0)
    want = np.mean(np.log(np.exp(scores).sum(1)) - scores[np.arange(8), y])
    assert model.evaluate(x, y, verbose=0) == pytest.approx(want, rel=1e-5)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights()))
    with pytest.raises(ot.UsageError, match="sample_weight") as e:
        model.train_on_batch(x, y, sample_weight=np.zeros(8, np.float32))
    assert e.value.code == "OT1606"
