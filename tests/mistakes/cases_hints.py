"""Mistakes whose answers are seldom seen: portable steps, whole trainings, processes, engines, board, conformance."""

import numpy as np

from mistake import Mistake as M
from odd_models import (
    fixed_batch,
    half,
    norm_in_branch,
    one_number,
    recurrent,
    regions,
    round_only,
    saturated,
    slow_loop,
    taken_port,
    unknown_operator,
    with_norm,
)
from workshop import both, cli, model, npz

T = "onnxtrain train mlp.onnx --data data.npz --epochs 1 --out o "
W = "onnxtrain export mlp.train.onnx --whole --batch 20 -o w.onnx "
S = "onnxtrain export {} --step -o s.onnx "

PORTABLE = [
    M("--step and --whole at once", W + "--step", 2, ["--step", "--whole"]),
    M("whole training in an unknown loop", W + "--loop while", 2, ["while"], "unrolled", W + "--loop {fix} --rows 120"),
    M("whole training in the compact form", W + "--form compact", 2, ["compact", "--whole"]),
    M("whole training with random inputs", W + "--random input", 2, ["--random input"]),
    M("whole training with embedded state", W + "--embed-state", 2, ["--embed-state"]),
    M(
        "whole training as scan without rows",
        W + "--loop scan",
        2,
        ["scan", "rows"],
        "--rows 60000",
        W + "--loop scan {fix}",
    ),
    M(
        "fewer rows than a batch",
        W + "--rows 7",
        2,
        ["7 rows", "20"],
        "--batch 7",
        "onnxtrain export mlp.train.onnx --whole -o w.onnx --rows 7 {fix}",
    ),
    M(
        "validation rows without --valid",
        W + "--valid-rows 20",
        2,
        ["validation"],
        "--valid",
        W + "--valid-rows 20 {fix}",
    ),
    M("--dim for the rows of a whole training", W + "--dim N=4", 2, ["--dim N", "--batch"]),
    M(
        "whole training unrolled too far",
        W + "--rows 100000 --loop unrolled --epochs 50",
        2,
        ["nodes"],
        "--loop loop",
        W + "--rows 100000 --epochs 50 {fix}",
    ),
    M("recurrent layers by scan", S.format("mlp.train.onnx") + "--recurrent scan", 2, ["--recurrent scan"]),
    M(
        "a step in opset 5",
        S.format("mlp.train.onnx") + "--opset 5",
        2,
        ["5", "13"],
        "--opset 17",
        S.format("mlp.train.onnx") + "{fix}",
    ),
    M(
        "a portable step in float16",
        S.format("half.train.onnx"),
        3,
        ["float16", "'x'"],
        "--form compact",
        S.format("half.train.onnx") + "{fix}",
        both(model("half.onnx", half), lambda d: cli("prepare", "half.onnx", "-o", "half.train.onnx", cwd=d)),
    ),
    M(
        "a lowered recurrent layer of open length",
        "onnxtrain prepare rnn.onnx -o r.train.onnx --lowered",
        3,
        ["RNN"],
        "--dim STEPS",
        "onnxtrain prepare rnn.onnx -o r.train.onnx --lowered {fix}=6",
        model("rnn.onnx", recurrent),
    ),
    M(
        "options of a step without --step",
        "onnxtrain export mlp.train.onnx -o m.onnx --opset 15",
        2,
        ["--opset"],
        "--step",
        "onnxtrain export mlp.train.onnx -o m.onnx --opset 15 {fix}",
    ),
    M(
        "epochs without --whole",
        "onnxtrain export run -o m.onnx --epochs 3",
        2,
        ["--epochs"],
        "--whole",
        "onnxtrain export run -o m.onnx --epochs 3 {fix}",
    ),
    M(
        "folding in a training step",
        "onnxtrain export mlp.train.onnx -o m.onnx --step --fold-bn",
        2,
        ["--fold-bn"],
        then="onnxtrain export mlp.train.onnx -o m.onnx --step",
    ),
    M(
        "a whole training of a model with ai.onnx.ml operators",
        "onnxtrain new mlp --data gaps.csv --target kind -o g.onnx && onnxtrain prepare g.onnx -o g.train.onnx && "
        "onnxtrain export g.train.onnx --whole -o w.onnx",
        3,
        ["Imputer"],
        "--step --form compact",
        "onnxtrain export g.train.onnx {fix} -o w.onnx",
        lambda d: (d / "gaps.csv").write_text(
            "a,b,kind\n"
            + "".join(
                f"{'' if k % 7 == 0 else round(k * 0.37 % 3, 3)},{k * 0.91 % 2:.3f},{'xy'[k % 2]}\n" for k in range(60)
            )
        ),
    ),
    M("a custom library without a runtime", T + "--custom-ops lib.so", 2, ["--custom-ops"]),
    M(
        "an unknown operator",
        "onnxtrain run odd.onnx --inputs only_x.npz",
        3,
        ["Frobnicate", "com.example", "frob"],
        plant=model("odd.onnx", unknown_operator),
    ),
]

MODELS = [
    M(
        "a target called like a tensor",
        "onnxtrain prepare mlp.onnx -o m.onnx --label fc1.weight",
        2,
        ["'fc1.weight'"],
        "--label",
        "onnxtrain prepare mlp.onnx -o m.onnx {fix} target",
    ),
    M(
        "BatchNormalization in a branch",
        "onnxtrain prepare if.onnx -o m.onnx --loss cross_entropy",
        3,
        ["bn", "If"],
        plant=model("if.onnx", norm_in_branch),
    ),
    M(
        "BatchNormalization with one row",
        "onnxtrain train bn.onnx --data data.npz --loss cross_entropy --epochs 1 --batch 1 --out o",
        3,
        ["bn", "one value per channel"],
        "--freeze",
        "onnxtrain train bn.onnx --data data.npz --loss cross_entropy --epochs 1 --batch 1 --out o {fix} 'bn.*'",
        model("bn.onnx", with_norm),
    ),
    M(
        "every gradient is zero",
        "onnxtrain train sat.onnx --data bits.npz --loss mse --epochs 1 --out o",
        0,
        ["exactly 0", "saturated"],
        plant=both(
            model("sat.onnx", saturated),
            npz(
                "bits.npz",
                x=lambda: np.random.default_rng(0).random((64, 4), np.float32),
                y=lambda: np.zeros((64, 1), np.float32),
            ),
        ),
    ),
    M(
        "only Round before the output",
        "onnxtrain prepare round.onnx -o m.onnx --loss mse",
        3,
        ["Round", "round"],
        plant=model("round.onnx", round_only),
    ),
    M(
        "a schedule without its number",
        T + "--schedule step",
        2,
        ["step", "step_size"],
        "--schedule-arg",
        T + "--schedule step {fix} step_size=10",
    ),
    M(
        "multistep without milestones",
        T + "--schedule multistep",
        2,
        ["milestones"],
        "--schedule-arg milestones=1000,2000",
        T + "--schedule multistep {fix}",
    ),
    M(
        "a step that is too slow",
        "onnxtrain run slow.onnx --inputs only_x.npz --time 0.2 -o o.npz",
        3,
        ["loop", "the limit is 0.2 s"],
        "--time",
        "onnxtrain run mlp.onnx --inputs only_x.npz {fix} 20 -o o.npz",
        model("slow.onnx", slow_loop),
    ),
    M(
        "training steps of a plain model",
        "ot.Trainer('mlp.onnx')",
        "ModelError",
        ["training"],
        "ot.prepare",
        "ot.Trainer(ot.prepare('mlp.onnx', loss='cross_entropy', optimizer=ot.SGD(lr=0.1)))",
        python=True,
    ),
    M(
        "prediction without rows",
        "onnxtrain predict one.onnx --data only_x.npz",
        4,
        ["rows"],
        "onnxtrain run",
        "onnxtrain run one.onnx --inputs only_x.npz -o out.npz",
        model("one.onnx", one_number),
    ),
    M(
        "a batch that the model does not take",
        "onnxtrain train eight.onnx --data data.npz --loss cross_entropy --batch 16 --epochs 1 --out o",
        4,
        ["8 rows", "16"],
        "--batch 8",
        "onnxtrain train eight.onnx --data data.npz --loss cross_entropy {fix} --epochs 1 --out o",
        model("eight.onnx", lambda: fixed_batch(8)),
    ),
    M(
        "fewer steps than an update takes",
        T + "--accumulate 1000",
        0,
        ["1000", "nothing would be learnt"],
        "--accumulate",
        T + "{fix} 2",
    ),
]

PROCESSES = [
    M(
        "launch without --",
        "onnxtrain launch -n 2 train mlp.onnx --data data.npz",
        2,
        ["--data", "launch -n 2 -- train"],
    ),
    M(
        "launch of a misspelt command",
        "onnxtrain launch -n 2 -- trian mlp.onnx",
        2,
        ["trian"],
        "train",
        "onnxtrain train mlp.onnx --data data.npz --epochs 1 --out o",
    ),
    M("report of nothing", "onnxtrain report nowhere", 1, ["there is no run folder 'nowhere'"], "onnxtrain runs"),
    M("--distributed yes", T + "--distributed yes", 2, ["yes"], "auto", T + "--distributed {fix}"),
    M("blocks for an engine", T + "--micro-blocks 2 --engine onnxruntime", 2, ["--micro-blocks"]),
    M(
        "board of an empty folder",
        "onnxtrain board empty --port 0",
        1,
        ["'empty'"],
        plant=lambda d: (d / "empty").mkdir(),
    ),
    M("board on a port in use", "onnxtrain board . --port $(cat port)", 1, ["port", "in use"], plant=taken_port),
    M(
        "a suite into a full folder",
        "onnxtrain conformance export pictures",
        2,
        ["'pictures'", "onnxtrain conformance export pictures-1"],
    ),
    M("a suite that is none", "onnxtrain conformance run pictures", 2, ["'pictures'"]),
    M("export of a suite to nowhere", "onnxtrain conformance export", 2, ["folder"]),
    M("a case that is none", "onnxtrain conformance run --only nothing", 2, ["nothing"]),
    M(
        "engine and backend at once",
        "onnxtrain conformance run --engine native --backend onnx.reference",
        2,
        ["--engine", "--backend"],
    ),
    M("a backend that is none", "onnxtrain conformance run --backend json --only sgd_plain", 2, ["'json'"]),
]

RARE = [
    M(
        "a lowered RoiAlign",
        "onnxtrain prepare roi.onnx -o m.onnx --loss mse --lowered",
        3,
        ["RoiAlign"],
        then="onnxtrain prepare roi.onnx -o m.onnx --loss mse",
        plant=model("roi.onnx", regions),
    ),
    M(
        "distributed in words",
        "ot.Trainer(ot.load('mlp.train.onnx'), distributed='yes')",
        "UsageError",
        ["yes"],
        "auto",
        "ot.Trainer(ot.load('mlp.train.onnx'), distributed='off')",
        python=True,
    ),
    M(
        "a task that is none",
        "ot.new('mlp', 'data.csv', target='kind', task='clases')",
        "UsageError",
        ["clases"],
        "task='classes'",
        "ot.new('mlp', 'data.csv', target='kind', {fix})",
        python=True,
    ),
    M(
        "three arrays for validation",
        "ot.load('mlp.onnx').fit(x, y, valid=(x, y, y))",
        "UsageError",
        ["3 items"],
        "valid=0.1",
        "ot.load('mlp.onnx').fit(x, y, {fix}, epochs=1)",
        python=True,
    ),
    M(
        "one row without its dimension, Python",
        "ot.load('mlp.onnx').predict(x[0])",
        "DataError",
        ["[4]"],
        "x[None]",
        "ot.load('mlp.onnx').predict(x[0][None])",
        python=True,
    ),
    M(
        "a new model's target misspelt",
        "ot.new('mlp', 'data.csv', target='knd')",
        "DataError",
        ["knd"],
        "target='kind'",
        "ot.new('mlp', 'data.csv', {fix})",
        python=True,
    ),
]

CASES = PORTABLE + MODELS + PROCESSES + RARE
