"""Data that the command line reads beside arrays: Image folders, safetensors."""

import json
import pathlib
import struct
import subprocess
import sys
import zlib

import numpy as np
import onnx
import pytest

from models import rows, with_weights

CLI = pathlib.Path(sys.executable).parent / "onnxtrain"


def cli(*arguments):
    done = subprocess.run([CLI, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def png(path, pixels):
    """[H, W, 3] bytes as a PNG file."""
    height, width, _ = pixels.shape
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


@pytest.fixture
def images(tmp_path):
    """Bright upper or lower halves, of many sizes; and a model for 8 x 8."""
    rng = np.random.default_rng(0)
    for part, count in (("train", 40), ("test", 10)):
        for k in range(count):
            for name in ("lower", "upper"):
                h, w = rng.integers(8, 20, 2) * 2
                pixels = rng.integers(0, 80, (h, w, 3)).astype(np.uint8)
                pixels[: h // 2] += 120 * (name == "upper")
                pixels[h // 2 :] += 120 * (name == "lower")
                png(tmp_path / f"images/{part}/{name}/{k}.png", pixels)
    m = with_weights('''halves (float[N, 3, 8, 8] image) => (float[N, 2] scores)
        { flat = Flatten (image) scores = Gemm <transB = 1> (flat, "w", "b") }''', {"w": (2, 192), "b": (2,)},
                     scale=0.1)
    onnx.save(m, tmp_path / "halves.onnx")
    return tmp_path


def test_image_folder(images):
    run = images / "run"
    said = cli("train", images / "halves.onnx", "--data", images / "images", "--epochs", 20, "--lr", 0.01, "--out", run)
    assert "80 images" in said and "images" in said
    assert "100.00 %" in cli("eval", run, "--data", images / "images")
    cli("predict", run, "--data", images / "images/test/upper", "-o", images / "p.npy")
    scores = np.load(images / "p.npy")
    assert scores.shape == (10, 2) and (scores.argmax(1) == 1).all()


def safetensors(path, arrays):
    names = {np.dtype(np.float32): "F32", np.dtype(np.int64): "I64"}
    header, data = {}, b""
    for name, a in arrays.items():
        header[name] = {"dtype": names[a.dtype], "shape": list(a.shape),
                        "data_offsets": [len(data), len(data) + a.nbytes]}
        data += a.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_safetensors_is_as_good_as_npz(path, tmp_path):
    x, y = rows(100)
    np.savez(tmp_path / "data.npz", x=x, y=y)
    safetensors(tmp_path / "data.safetensors", {"x": x, "y": y})
    weights = []
    for name in ("data.npz", "data.safetensors"):
        cli("train", path, "--data", tmp_path / name, "--epochs", 2, "--out", tmp_path / name[-3:])
        model = onnx.load(tmp_path / name[-3:] / "model.onnx")
        weights.append([t.raw_data for t in model.graph.initializer])
    assert weights[0] == weights[1] and weights[0]
