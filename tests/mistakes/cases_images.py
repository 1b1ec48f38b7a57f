"""Mistakes with image folders, augmentation and outputs of predict."""

import shutil

import numpy as np

from mistake import Mistake as M
from workshop import both, raw

TRAIN = "onnxtrain train cnn.onnx --data images.npz --epochs 1 --out o "
NEW = "onnxtrain new cnn --data pictures -o m.onnx"
BROKEN = raw("pictures/dog/3.png", b"\x89PNG\r\n\x1a\nnothing")


def break_all(folder, names=("cat", "dog", "owl")):
    for name in names:
        for path in (folder / "pictures" / name).glob("*.png"):
            path.write_bytes(b"\x89PNG\r\n\x1a\nnothing")


def listed(d):
    """Images in one folder, and a table that says what they show."""
    rows = ["file,what"]
    for image in sorted((d / "pictures").glob("*/*.png")):
        name = f"{image.parent.name}{image.name}"
        (d / "flat").mkdir(exist_ok=True)
        shutil.copy(image, d / "flat" / name)
        rows.append(f"{name},{image.parent.name}")
    (d / "flat/labels.csv").write_text("\n".join(rows) + "\n")


CASES = [
    M("a damaged image", NEW, 4, ["pictures/dog/3.png", "damaged"], "--skip-bad", NEW + " {fix}", BROKEN),
    M("a damaged image in training", "onnxtrain train cnn.onnx --data pictures --epochs 1 --out o", 4,
      ["pictures/dog/3.png"], "--skip-bad", "onnxtrain train cnn.onnx --data pictures --epochs 1 --out o {fix}",
      BROKEN),
    M("damaged images left out", NEW + " --skip-bad", 0, ["1 damaged image of 24", "pictures/dog/3.png"], plant=BROKEN),
    M("only damaged images", NEW + " --skip-bad", 4, ["none of the 24 images"], plant=break_all),
    M("a class of damaged images", NEW + " --skip-bad", 4, ["class 'dog'"],
      plant=lambda d: break_all(d, ("dog",))),
    M("images in front of a table's model",
      "onnxtrain train mlp.onnx --data pictures --preprocess auto --epochs 1 --out o", 4, ["[N,C,H,W]", "float[N,4]"],
      plant=both()),
    M("folders of parts for classes", "onnxtrain new cnn --data p -o n.onnx", 4, ["OT2202", "'cat', 'dog', 'owl'"],
      "--data p/first", "onnxtrain new cnn {fix} -o n.onnx",
      lambda d: [shutil.copytree(d / "pictures", d / "p" / n) for n in ("first", "second")]),
    M("a table of images that lie elsewhere", "onnxtrain new cnn --data labels.csv --target what -o n.onnx", 4,
      ["OT2207", "column 'file'", "labels.csv", "none of the 24 images"], "--images",
      "onnxtrain new cnn --data labels.csv --target what {fix} flat -o n.onnx",
      lambda d: (listed(d), (d / "flat/labels.csv").rename(d / "labels.csv"))),
    M("an image of a table is gone", "onnxtrain new cnn --data flat/labels.csv --target what -o n.onnx", 4,
      ["OT2207", "1 of the 24 images", "flat/dog3.png"], "--skip-bad",
      "onnxtrain new cnn --data flat/labels.csv --target what {fix} -o n.onnx",
      lambda d: (listed(d), (d / "flat/dog3.png").unlink())),
    M("images without labels", "onnxtrain new cnn --data pictures/dog -o n.onnx", 4, ["OT2186", "pictures/dog"]),
    M("a UTF-8 table read as Latin-1", "onnxtrain new mlp --data t.csv --encoding latin1 -o n.onnx", 0,
      ["the text is UTF-8", "leave --encoding out"],
      plant=raw("t.csv", ("x,kind\n" + "".join(f"{k * 7 % 11},{'süß' if k % 2 else 'bitter'}\n" for k in range(40)))
                .encode())),
    M("channels that are first for a model of channels last",
      "onnxtrain new cnn --data last.npz --layout nhwc -o n.onnx && onnxtrain train n.onnx --data images.npz "
      "--layout nhwc --epochs 1 --out o", 4, ["OT2110", "[60,3,8,8]"], "leave --layout nhwc out",
      "onnxtrain train n.onnx --data images.npz --epochs 1 --out o",
      lambda d: np.savez(d / "last.npz", x=np.load(d / "images.npz")["x"].transpose(0, 2, 3, 1),
                         y=np.load(d / "images.npz")["y"])),
    M("augmentation misspelt", TRAIN + "--augment flipp", 2, ["flipp"], "--augment flip", TRAIN + "{fix}"),
    M("augmentation by words", TRAIN + "--augment crop:some", 2, ["crop:some"], "--augment crop:4", TRAIN + "{fix}"),
    M("augmentation of a table", "onnxtrain train mlp.onnx --data data.npz --augment flip --epochs 1 --out o", 2,
      ["'x' float[N,4]", "image"]),
    M("a crop larger than the image", TRAIN + "--augment crop:40", 2, ["crop:40", "8 x 8"], "--augment crop:1",
      TRAIN + "{fix}"),
    M("augmentation by a graph of other rows", TRAIN + "--augment mlp.onnx", 3, ["mlp.onnx", "float[N,4]"]),
    M("augmentation of a training that is there",
      "onnxtrain train mlp.train.onnx --data data.npz --augment flip --epochs 1 --out o", 2, ["--augment"]),
    M("augmentation from Python", "import onnxtrain as ot\not.prepare('cnn.onnx', augment='rotat:3')", "UsageError",
      ["rotat"], "augment='rotate'", "ot.prepare('cnn.onnx', {fix})", python=True),
    M("probabilities of numbers",
      "onnxtrain train reg.onnx --data reg.csv --target price --epochs 1 --out o && onnxtrain predict o --data reg.csv"
      " --proba", 2, ["--proba", "'y'"]),
    M("predictions in a format that is none", "onnxtrain predict run --data data.npz -o p.xlsx", 2, [".xlsx"],
      "-o p.csv", "onnxtrain predict run --data data.npz {fix}"),
]
