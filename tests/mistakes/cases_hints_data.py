"""Mistakes whose answers are seldom seen: data, new models, runs."""

import numpy as np

from cases_table import WORDS
from mistake import Mistake as M
from odd_models import big_columns
from workshop import both, npz, removed, text

T = "onnxtrain train mlp.onnx --data data.npz --epochs 1 --out o "

DATA = [
    M(
        "unknown encoding",
        "onnxtrain train mlp.onnx --data data.csv --encoding koi9 --epochs 1 --out o",
        2,
        ["koi9"],
        "latin1",
        "onnxtrain train mlp.onnx --data data.csv --encoding {fix} --epochs 1 --out o",
    ),
    M(
        "a separator of two characters",
        "onnxtrain train mlp.onnx --data data.csv --separator ';;' --epochs 1 --out o",
        2,
        ["';;'"],
        "--separator tab",
        "onnxtrain info mlp.onnx",
    ),
    M(
        "a table in another encoding",
        "onnxtrain train mlp.onnx --data l.csv --epochs 1 --out o",
        4,
        ["l.csv", "line 6"],
        "--encoding cp1252",
        "onnxtrain train mlp.onnx --data l.csv --epochs 1 --out o {fix}",
        lambda d: (d / "l.csv").write_bytes((d / "data.csv").read_bytes().replace(b"red", b"r\xe9d")),
    ),
    M(
        "UTF-16 cut short",
        "onnxtrain train mlp.onnx --data u.csv --epochs 1 --out o",
        4,
        ["u.csv", "UTF-16"],
        plant=lambda d: (d / "u.csv").write_bytes((d / "data.csv").read_text().encode("utf-16")[:-1]),
    ),
    M(
        "columns of very different size",
        "onnxtrain train reg.onnx --data big.csv --epochs 1 --out o",
        0,
        ["'a'"],
        "--scale standard",
        "onnxtrain train reg.onnx --data big.csv --epochs 1 --out o2 {fix}",
        big_columns,
    ),
    M(
        "one row cannot be split",
        "onnxtrain train mlp.onnx --data one.npz --epochs 1 --out o --valid 0.5",
        4,
        ["one row"],
        plant=npz("one.npz", x=lambda: np.ones((1, 4), np.float32), y=lambda: np.zeros(1, np.int64)),
    ),
    M(
        "too few class weights",
        T + "--class-weights 1,2",
        2,
        ["2 class weights", "3 classes"],
        "--class-weights 1,1,1",
        T + "{fix}",
    ),
    M(
        "class weights for a regression",
        "onnxtrain train reg.onnx --data reg.npz --class-weights 1,2 --epochs 1 --out o",
        2,
        ["class weights", "mse"],
        then="onnxtrain train reg.onnx --data reg.npz --epochs 1 --out o",
    ),
    M(
        "a metric without validation",
        T + "--metric f1 --valid 0",
        2,
        ["--metric f1"],
        "--valid 0.1",
        T + "--metric f1 {fix}",
    ),
    M(
        "a text column among numbers",
        "onnxtrain train reg.onnx --data data.csv --target a --epochs 1 --out o",
        4,
        ["'kind'"],
        "onnxtrain new mlp --data data.csv --target a -o model.onnx",
        "",
    ),
    M(
        "two numbers to learn, one class chosen",
        "onnxtrain train mlp.onnx --data three.csv --target p,q,r --epochs 1 --out o",
        0,
        ["mse, because 3 target columns are named"],
        plant=lambda d: (d / "three.csv").write_text(
            "a,b,c,d,p,q,r\n"
            + "".join(",".join(f"{v:.3f}" for v in row) + "\n" for row in np.random.default_rng(1).normal(size=(60, 7)))
        ),
    ),
    M(
        "words for a hinge",
        "onnxtrain train reg.onnx --data two.csv --loss hinge --epochs 1 --out o",
        4,
        ["'kind'", "text"],
        "--loss bce_logits",
        "onnxtrain train reg.onnx --data two.csv {fix} --epochs 1 --out o",
        lambda d: (d / "two.csv").write_text((d / "data.csv").read_text().replace("blue", "red")),
    ),
    M(
        "probabilities wanted of three scores",
        "onnxtrain train mlp.onnx --data data.csv --loss bce --epochs 1 --out o",
        3,
        ["'logits'"],
        "--loss cross_entropy",
        "onnxtrain train mlp.onnx --data data.csv {fix} --epochs 1 --out o",
    ),
    M("a metric that is none", T + "--metric f11", 2, ["f11"], "--metric", T + "{fix} accuracy"),
    M(
        "probabilities of a regression",
        "onnxtrain predict reg.onnx --data only_x.npz --proba",
        2,
        ["--proba"],
        then="onnxtrain predict reg.onnx --data only_x.npz",
    ),
    M(
        "balanced weights without data",
        "onnxtrain prepare mlp.onnx -o m.onnx --class-weights balanced",
        2,
        ["balanced"],
        "--class-weights 1,2",
        "onnxtrain prepare mlp.onnx -o m.onnx {fix},1",
    ),
    M(
        "balanced weights for a regression",
        "onnxtrain train reg.onnx --data reg.npz --class-weights balanced --epochs 1 --out o",
        2,
        ["balanced"],
    ),
    M(
        "a hidden layer of nothing",
        "onnxtrain new mlp --data data.csv --target kind --hidden 0 -o m.onnx",
        2,
        ["0"],
        "--hidden 128,64",
        "onnxtrain new mlp --data data.csv --target kind {fix} -o m.onnx",
    ),
    M(
        "a dropout of 1",
        "onnxtrain new mlp --data data.csv --target kind --dropout 1 -o m.onnx",
        2,
        ["1"],
        "--dropout 0.1",
        "onnxtrain new mlp --data data.csv --target kind {fix} -o m.onnx",
    ),
    M(
        "a target of one class",
        "onnxtrain new mlp --data same.csv --target kind -o m.onnx",
        4,
        ["1 class"],
        plant=lambda d: (d / "same.csv").write_text(
            "\n".join(f"{k * 0.37 % 3:.2f},{k * 0.91 % 2:.2f},red" if k else "a,b,kind" for k in range(60)) + "\n"
        ),
    ),
    M(
        "an image size in words",
        "onnxtrain new cnn --data pictures --image-size big -o m.onnx",
        2,
        ["big"],
        "--image-size 64",
        "onnxtrain new cnn --data pictures {fix} -o m.onnx",
    ),
    M(
        "scale of an unknown kind, new",
        "onnxtrain new mlp --data data.csv --target kind --scale big -o m.onnx",
        2,
        ["big"],
        "--scale standard",
        "onnxtrain new mlp --data data.csv --target kind {fix} -o m.onnx",
    ),
    M(
        "impute in words",
        "onnxtrain new mlp --data data.csv --target kind --impute zero -o m.onnx",
        2,
        ["zero"],
        "--impute median",
        "onnxtrain new mlp --data data.csv --target kind {fix} -o m.onnx",
    ),
    M(
        "text as a number",
        "onnxtrain new mlp --data data.csv --target kind --task numbers -o m.onnx",
        4,
        ["'kind'"],
        "--task classes",
        "onnxtrain new mlp --data data.csv --target kind {fix} -o m.onnx",
    ),
    M(
        "fractions as classes",
        "onnxtrain new mlp --data reg.csv --target price --task classes -o m.onnx",
        4,
        ["'price'"],
        "--task numbers",
        "onnxtrain new mlp --data reg.csv --target price {fix} -o m.onnx",
    ),
    M(
        "a model that scales, scaled again",
        "onnxtrain new mlp --data data.csv --target kind -o m.onnx && "
        "onnxtrain train m.onnx --data data.csv --scale 5,2 --epochs 1 --out o",
        2,
        ["--scale 5,2", "twice"],
        then="onnxtrain train m.onnx --data data.csv --epochs 1 --out o",
    ),
    M(
        "a scale that is not needed",
        "onnxtrain new mlp --data data.csv --target kind -o m.onnx && "
        "onnxtrain train m.onnx --data data.csv --scale standard --epochs 1 --out o",
        0,
        ["standard is not applied"],
    ),
    M(
        "a table of notes",
        "onnxtrain new mlp --data notes.csv --target kind -o m.onnx",
        4,
        ["notes.csv"],
        "--text note --tokenizer tokenizer.json",
        "onnxtrain new gru --data notes.csv --target kind -o m.onnx {fix}",
        both(WORDS, text("notes.csv", "note,kind\n" + "".join(
            f"words number {k} about thing {k * 7},{'ab'[k % 2]}\n" for k in range(1, 300)))),
    ),
]

RUNS = [
    M(
        "config.toml of a run is gone",
        "onnxtrain train --resume run --epochs 3",
        0,
        ["config.toml", "checkpoint"],
        plant=removed("run/config.toml"),
    ),
    M(
        "last checkpoint is gone",
        "onnxtrain train --resume run --epochs 3",
        1,
        ["last.train.onnx", "'run'"],
        "onnxtrain train --resume run/checkpoints/best.train.onnx",
        "onnxtrain train --resume run/checkpoints/best.train.onnx --data data.npz --out runs/other --epochs 3",
        removed("run/checkpoints/last.train.onnx"),
    ),
]

MORE = [
    M("more than everything for validation", T + "--valid 1.5", 2, ["1.5"], "--valid 0.1", T + "{fix}"),
    M(
        "one-hot columns for a model that has no room",
        "onnxtrain train mlp.onnx --data data.csv --one-hot a --epochs 1 --out o",
        4,
        ["one-hot"],
        then="onnxtrain new mlp --data data.csv --target kind -o m.onnx",
    ),
    M(
        "preprocessing before a training",
        "onnxtrain train mlp.train.onnx --data data.csv --preprocess auto --out o",
        4,
        ["training already"],
        then="onnxtrain export mlp.train.onnx -o plain.onnx",
    ),
    M("preprocessing of arrays", T + "--preprocess auto", 4, ["tables", "data.npz"], then=T),
    M(
        "too many categories",
        "onnxtrain new mlp --data many.csv --target kind --one-hot name -o m.onnx",
        4,
        ["'name'"],
        "--drop name",
        "onnxtrain new mlp --data many.csv --target kind {fix} -o m.onnx",
        lambda d: (d / "many.csv").write_text(
            "name,size,kind\n" + "".join(f"n{k},{k * 0.37 % 3:.3f},{'ab'[k % 2]}\n" for k in range(10100))
        ),
    ),
    M(
        "an older checkpoint than the log",
        "cp run/checkpoints/last.train.onnx old.onnx && onnxtrain train --resume run --epochs 5 -q && "
        "cp old.onnx run/checkpoints/last.train.onnx && onnxtrain train --resume run --epochs 6",
        1,
        ["epoch 2", "epoch 5"],
        "onnxtrain train --resume run --out runs/other",
        "onnxtrain train --resume run --out runs/other --epochs 6",
    ),
    M(
        "words with preprocessing",
        "onnxtrain train mlp.onnx --data data.csv --preprocess auto --epochs 1 --out o",
        0,
        ["4 numbers"],
    ),
]

MORE += [
    M(
        "rows of one class",
        "onnxtrain train mlp.onnx --data same.npz --epochs 1 --out o",
        0,
        ["every row has class 1"],
        plant=npz(
            "same.npz", x=lambda: np.random.default_rng(0).random((60, 4), np.float32), y=lambda: np.ones(60, int)
        ),
    ),
    M(
        "a function for a loss",
        "ot.prepare('mlp.onnx', loss=lambda a, b: a)",
        "UsageError",
        ["function"],
        'loss="auto"',
        "ot.prepare('mlp.onnx', {fix})",
        python=True,
    ),
    M(
        "no loss",
        "ot.prepare('mlp.onnx', loss=None)",
        "UsageError",
        ["NoneType"],
        'loss="auto"',
        "ot.prepare('mlp.onnx', {fix})",
        python=True,
    ),
    M(
        "more classes than outputs, classifier",
        "ot.OnnxClassifier('mlp.onnx', epochs=1).fit(x, np.arange(len(x)) % 5)",
        "DataError",
        ["5 classes", "3"],
        python=True,
    ),
    M(
        "--dim of nothing",
        "onnxtrain prepare mlp.onnx -o m.onnx --dim Q=3",
        2,
        ["'Q'", "'N'"],
        then="onnxtrain prepare mlp.onnx -o m.onnx --dim N=3",
    ),
    M(
        "resume in the middle of an epoch with larger batches",
        "onnxtrain train mlp.onnx --data data.npz --batch 8 --steps 10 --out m -q && "
        "onnxtrain train --resume m --batch 100 --epochs 5",
        1,
        ["batch 10", "2 batches"],
        "--batch",
        "onnxtrain train --resume m {fix} 8 --epochs 5",
    ),
]

CASES = DATA + RUNS + MORE
