"""The folder in which mistakes are made: correct models, data and a run, made by code, before one thing is spoilt."""

import gzip
import shutil
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from cli_models import cli, cnn, images, mlp, save, table  # noqa: E402

ROWS = 120


def dense(inputs, outputs, tail=None, name="y", seed=0):
    """x [N, inputs] -> [N, outputs], with another node behind when `tail` names one."""
    r = np.random.default_rng(seed)
    nodes = [h.make_node("Gemm", ["x", "fc.weight", "fc.bias"], ["s" if tail else name], "fc", transB=1)]
    if tail:
        nodes.append(h.make_node(tail, ["s"], [name], "tail"))
    g = h.make_graph(
        nodes,
        "g",
        [h.make_tensor_value_info("x", T.FLOAT, ["N", inputs])],
        [h.make_tensor_value_info(name, T.FLOAT, ["N", outputs])],
        [
            numpy_helper.from_array((r.standard_normal((outputs, inputs)) * 0.3).astype(np.float32), "fc.weight"),
            numpy_helper.from_array(np.zeros(outputs, np.float32), "fc.bias"),
        ],
    )
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def write_csv(path, x, y, header=("a", "b", "c", "d", "kind"), words=("red", "green", "blue")):
    lines = [",".join(header)]
    for row, target in zip(x, y):
        lines.append(",".join([f"{v:.6g}" for v in row] + [words[target] if words else f"{target:.6g}"]))
    Path(path).write_text("\n".join(lines) + "\n")


def png(pixels):
    """The bytes of an image file: [height, width, 3] uint8."""
    h_, w_, _ = pixels.shape
    rows = b"".join(b"\0" + pixels[k].tobytes() for k in range(h_))

    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", struct.pack(">IIBBBBB", w_, h_, 8, 2, 0, 0, 0))
        + part(b"IDAT", zlib.compress(rows))
        + part(b"IEND", b"")
    )


def write_images(folder, classes=("cat", "dog", "owl"), per_class=8, size=8):
    r = np.random.default_rng(0)
    for k, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for i in range(per_class):
            pixels = r.integers(0, 100, (size, size, 3)).astype(np.uint8) + np.uint8(50 * k)
            (folder / name / f"{i}.png").write_bytes(png(pixels))


def make(top):
    """Everything that is right."""
    top = Path(top)
    save(mlp(), top / "mlp.onnx")
    save(cnn(), top / "cnn.onnx")
    save(dense(4, 1), top / "reg.onnx")
    save(dense(4, 3, "Softmax", "probs"), top / "soft.onnx")
    save(dense(4, 1, "Sigmoid", "p"), top / "binary.onnx")
    x, y = table(ROWS)
    np.savez(top / "data.npz", x=x, y=y)
    np.savez(top / "reg.npz", x=x, y=(x @ np.array([1, -2, 0.5, 0], np.float32))[:, None].astype(np.float32))
    np.savez(top / "only_x.npz", x=x)
    np.save(top / "x.npy", x)
    write_csv(top / "data.csv", x, y)
    write_csv(top / "reg.csv", x, x @ np.array([1, -2, 0.5, 0]), header=("a", "b", "c", "d", "price"), words=None)
    ix, iy = images(60)
    np.savez(top / "images.npz", x=ix, y=iy)
    write_images(top / "pictures")
    for command in (
        ["prepare", "mlp.onnx", "-o", "mlp.train.onnx"],
        ["train", "mlp.onnx", "--data", "data.npz", "--epochs", 2, "--out", "run", "-q"],
        ["train", "mlp.onnx", "--data", "data.csv", "--epochs", 2, "--out", "csv-run", "-q"],
    ):
        r = cli(*command, cwd=top)
        assert r.returncode == 0, r.stderr
    return top


def copy_of(made, to):
    shutil.copytree(made, to, symlinks=True)
    for config in Path(to).glob("*/config.toml"):  # paths in there are absolute
        config.write_text(config.read_text().replace(str(made), str(to)))
    return Path(to)


# ---- ways to spoil something; each takes the folder


def npz(name, **arrays):
    return lambda d: np.savez(d / name, **{k: v() if callable(v) else v for k, v in arrays.items()})


def text(name, content):
    return lambda d: (d / name).write_text(content)


def raw(name, content):
    return lambda d: (d / name).write_bytes(content)


def replaced(name, old, new, count=1):
    def edit(d):
        s = (d / name).read_text()
        assert old in s, f"{old!r} is not in {name}"
        (d / name).write_text(s.replace(old, new, count))

    return edit


def cut(name, bytes_left):
    return lambda d: (d / name).write_bytes((d / name).read_bytes()[:bytes_left])


def flipped(name, at):
    def edit(d):
        b = bytearray((d / name).read_bytes())
        b[at] ^= 0xFF
        (d / name).write_bytes(bytes(b))

    return edit


def removed(name):
    def edit(d):
        if (d / name).is_dir():
            shutil.rmtree(d / name)
        else:
            (d / name).unlink()

    return edit


def edited(name, change, to=None):
    """A model changed by change(ModelProto)."""

    def edit(d):
        m = onnx.load(str(d / name))
        change(m)
        (d / (to or name)).write_bytes(m.SerializeToString())

    return edit


def model(name, build):
    return lambda d: save(build(), d / name)


def both(*edits):
    def edit(d):
        for e in edits:
            e(d)

    return edit


def gzipped(name, to):
    return lambda d: (d / to).write_bytes(gzip.compress((d / name).read_bytes()))


def idx(name, magic, dims, payload):
    return raw(name, struct.pack(">I", magic) + b"".join(struct.pack(">I", n) for n in dims) + payload)


def x(rows=ROWS, inputs=4):
    return table(rows, inputs)[0]


def y(rows=ROWS, classes=3):
    return table(rows, 4, classes)[1]
