"""Images that are damaged are data errors, in every format that ImageDecoder reads."""

import random
import warnings

import pytest

import onnxtrain as ot

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from onnx.backend.test.loader import load_model_tests

    CASES = [c for c in load_model_tests(kind="node") if c.name.startswith("test_image_decoder_decode")]


def test_there_are_images():
    assert {c.name.split("_")[4] for c in CASES} == {"bmp", "jpeg", "jpeg2k", "png", "pnm", "tiff", "webp"}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_damaged(case):
    inputs, _ = case.data_sets[0]
    model = type(case.model)()
    model.CopyFrom(case.model)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "bytes"
    session = ot.Session(model.SerializeToString())
    name = model.graph.input[0].name
    data = inputs[0]
    draw = random.Random(1)
    refused = 0
    for k in range(60):
        bad = data.copy()
        if k % 2:
            bad = bad[: draw.randrange(len(bad))]
        for _ in range(draw.choice((1, 4, 40)) if len(bad) else 0):
            bad[draw.randrange(min(len(bad), 64 if k % 3 else len(bad)))] = draw.randrange(256)
        try:
            session.run({name: bad})
        except ot.Error as e:
            assert e.code in ("OT1190", "OT1191"), e
            refused += 1
    assert refused
