"""Images that are damaged are data errors, in every format that ImageDecoder reads."""

import random
import struct
import warnings
import zlib

import numpy as np
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


def _png(samples, bits, color, interlaced, palette=b""):
    """A PNG file by hand; samples: [height, width, samples per pixel] as they are stored."""
    height, width = samples.shape[:2]
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    raw = b""
    for x, y, dx, dy in passes if interlaced else [(0, 0, 1, 1)]:
        part = samples[y::dy, x::dx]
        for row in part if part.size else ():
            if bits == 16:
                line = row.astype(">u2").tobytes()
            else:
                ones = np.unpackbits(row.reshape(-1, 1).astype(np.uint8), axis=1)[:, 8 - bits:]
                line = np.packbits(ones.reshape(-1)).tobytes()
            raw += b"\0" + line

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + (chunk(b"PLTE", palette) if palette else b"")
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("color,bits", [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16), (3, 1), (3, 2),
                                        (3, 4), (3, 8), (4, 8), (4, 16), (6, 8), (6, 16)])
def test_every_kind_of_png(color, bits, interlaced):
    session = ot.Session(ot.parse('<ir_version: 10, opset_import: ["" : 20]> '
                                  "g (uint8[n] data) => (uint8[h,w,3] y) { y = ImageDecoder(data) }"))
    r = np.random.default_rng(bits + color)
    per_pixel = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    for size in ((1, 1), (3, 9), (13, 6)):
        samples = r.integers(0, 1 << bits, (*size, per_pixel))
        palette = r.integers(0, 256, (1 << bits, 3)).astype(np.uint8) if color == 3 else None
        if color == 3:
            want = palette[samples[..., 0]]
        else:
            shown = samples >> 8 if bits == 16 else samples * 255 // ((1 << bits) - 1)
            want = np.repeat(shown[..., :1], 3, axis=2) if color in (0, 4) else shown[..., :3]
        data = np.frombuffer(_png(samples, bits, color, interlaced, b"" if palette is None else palette.tobytes()),
                             np.uint8)
        np.testing.assert_array_equal(session.run({"data": data})["y"], want)
