"""Mistakes with runs: folders, checkpoints, resumes, configuration files."""

from mistake import Mistake as M
from workshop import both, cut, flipped, npz, removed, replaced, text, x

T = "onnxtrain train mlp.onnx --data data.npz --out o "

CASES = [
    M("eval of a folder that is no run", "onnxtrain eval pictures --data data.npz", 1, ["pictures"]),
    M("resume of a folder that is no run", "onnxtrain train --resume pictures", 1, ["pictures"]),
    M("resume of nothing", "onnxtrain train --resume runs/nothing", 1, ["runs/nothing"]),
    M("resume with a model too", "onnxtrain train reg.onnx --resume run --epochs 4", 2, ["--resume"]),
    M("resume of a finished run", "onnxtrain train --resume run", 2, ["--epochs"], "--epochs", "onnxtrain train --resume run {fix} 3"),
    M("resume with fewer epochs", "onnxtrain train --resume run --epochs 1", 2, ["--epochs"]),
    M("resume with another optimizer", "onnxtrain train --resume run --epochs 3 --optimizer sgd", 2, ["--optimizer"]),
    M("resume when the data is gone", "onnxtrain train --resume run --epochs 3", 4, ["data.npz"], "--data", "onnxtrain train --resume run --epochs 3 {fix} copy.npz",
      plant=lambda d: (d / "data.npz").rename(d / "copy.npz")),
    M("resume without a checkpoint", "onnxtrain train --resume run --epochs 3", 1, ["checkpoint"], plant=removed("run/checkpoints")),
    M("checkpoint cut short", "onnxtrain train --resume run --epochs 3", 1, ["last.train.onnx"], plant=cut("run/checkpoints/last.train.onnx", 500)),
    M("checkpoint with a flipped byte", "onnxtrain train --resume run --epochs 3", 1, ["last.train.onnx"], plant=flipped("run/checkpoints/last.train.onnx", 900)),
    M("export without a best checkpoint", "onnxtrain export run -o m.onnx", 1, ["best"], "--which last", "onnxtrain export run -o m.onnx {fix}",
      plant=removed("run/checkpoints/best.train.onnx")),
    M("export to the run's checkpoint", "onnxtrain export nothing -o m.onnx", 3, ["nothing"]),
    M("report of a folder that is no run", "onnxtrain report pictures", 1, ["pictures"]),
    M("diff of a run and a folder", "onnxtrain diff run pictures", 1, ["pictures"]),
    M("metrics damaged", "onnxtrain diff run csv-run", 1, ["metrics.jsonl"], plant=text("run/metrics.jsonl", "{not json\n")),
    M("config damaged", "onnxtrain train --resume run --epochs 3", 2, ["config.toml"], plant=text("run/config.toml", "epochs = [\n")),
    M("config deleted", "onnxtrain train --resume run --epochs 3", 1, ["config.toml"], plant=removed("run/config.toml")),
    M("config file that is not there", T + "--config c.toml", 2, ["c.toml"]),
    M("config with an unknown key", T + "--config c.toml", 2, ["c.toml", "epoch"], "epochs", "sed -i s/epoch/{fix}/ c.toml && " + T + "--config c.toml",
      plant=text("c.toml", "epoch = 1\n")),
    M("config with text for a number", T + "--config c.toml", 2, ["c.toml", "epochs"], plant=text("c.toml", 'epochs = "many"\n')),
    M("config with a syntax error", T + "--config c.toml", 2, ["c.toml"], plant=text("c.toml", "epochs 3\n")),
    M("config with a negative batch", T + "--config c.toml", 2, ["c.toml", "batch"], plant=text("c.toml", "batch = -3\n")),
    M("config with a key twice", T + "--config c.toml", 2, ["c.toml", "epochs"], plant=text("c.toml", "epochs = 3\nepochs = 4\n")),
    M("learning rate that explodes", "onnxtrain train reg.onnx --data big.npz --optimizer sgd --lr 1e9 --epochs 5 --out o", 5, ["step"],
      plant=npz("big.npz", x=lambda: x() * 1000, y=lambda: x()[:, :1] * 1e6)),
    M("data changed before a resume", "onnxtrain train --resume run --epochs 3", 0, ["data.npz"],
      plant=npz("data.npz", x=lambda: x() + 5, y=lambda: (x()[:, 0] > 0).astype("int64"))),
    M("validation file is the training file", T + "--epochs 1 --valid data.npz", 0, ["data.npz"]),
    M("environment and flag differ", T + "--epochs 1 --dry-run", 0, ["1"], env={"ONNXTRAIN_EPOCHS": "7"}),
    M("run folder inside a file", "onnxtrain train mlp.onnx --data data.npz --epochs 1 --out data.npz/run", 2, ["data.npz/run"]),
    M("runs of nothing", "onnxtrain runs nowhere", 1, ["nowhere"]),
    M("folder that may not be written", "onnxtrain train mlp.onnx --data data.npz --epochs 1 --out /proc/run", 1, ["/proc/run"]),
    M("time that is over at once", T + "--epochs 3 --time 0.000001", 0, ["time"]),
    M("profile into nowhere", T + "--epochs 1 --profile no/where.json", 1, ["no/where.json"], plant=both()),
    M("replaced twice", "onnxtrain train --resume run --resume csv-run --epochs 3", 2, ["--resume"], plant=replaced("run/command.txt", "onnxtrain", "onnxtrain")),
]
