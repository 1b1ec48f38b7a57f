"""Settings with which nothing is learnt, updates that are lost, numbers that float32 has not."""

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

from cases_more import table
from mistake import Mistake as M
from workshop import dense, model, npz, save, x, y

TRAIN = "onnxtrain train mlp.onnx --data {} --epochs 1 --out o "
N, D, V = TRAIN.format("v.npz"), TRAIN.format("data.npz"), TRAIN.format("v.csv")
PREPARE = "onnxtrain prepare mlp.onnx -o p.onnx "


def P(name, typed, code, says, fix=None, then=None, plant=None):
    return M(name, typed, code, says, fix, then, plant, python=True)


def odd(name, options, says, fix=None, model="mlp.onnx"):
    """A setting that is said; the fix is typed in its place."""
    line = f"onnxtrain train {model} --data data.npz --epochs 1 --out o "
    return M(name, line + options, 0, ["OT3130", *says], fix, line + "{fix}" if fix else None)


SETTINGS = [
    odd("label smoothing of 0.99", "--label-smoothing 0.99", ["0.99", "only 0.01 more"], "--label-smoothing 0.1"),
    odd("the betas exchanged", "--optimizer-arg beta1=0.999 --optimizer-arg beta2=0.9", ["beta1 0.999", "Exchanged"],
        "--optimizer-arg beta1=0.9 --optimizer-arg beta2=0.999"),
    odd("momentum of 0.9999", "--optimizer momentum --momentum 0.9999", ["momentum 0.9999", "10000"]),
    odd("dampening of 1", "--optimizer momentum --optimizer-arg dampening=1", ["dampening 1", "first gradient"]),
    M("an average that stands still", D + "--optimizer rmsprop --optimizer-arg alpha=1", 0, ["OT3130", "alpha 1"],
      "--optimizer-arg alpha=0.99", D + "--optimizer rmsprop {fix}"),
    odd("a huge eps", "--optimizer-arg eps=1000", ["eps 1000"], "--optimizer-arg eps=1e-08"),
    odd("weight decay that takes the whole weight", "--lr 0.5 --weight-decay 4", ["0.5", "4", "sign"]),
    odd("weight decay of sgd", "--optimizer sgd --lr 1 --weight-decay 1", ["takes the whole weight away"]),
    odd("weight decay of lion", "--optimizer lion --lr 0.1 --weight-decay 15", ["sign changes"]),
    odd("clipped to next to nothing", "--clip 1e-8", ["--clip 1e-08", "far below"], "--clip 1"),
    odd("clipped to next to nothing by value", "--clip-value 1e-9 --optimizer sgd", ["--clip-value 1e-09"],
        "--clip-value 1"),
    odd("a class of no weight", "--class-weights 0,1,1", ["class 0", "weight 0"]),
    odd("a loss of a huge weight", "--optimizer sgd --lr 1e-12 --loss logits=cross_entropy:1e12", ["1e+12"]),
    M("a dropout of 0.99", "onnxtrain train drop.onnx --data data.npz --epochs 1 --out o", 0,
      ["OT3130", "'drop'", "99 %"], plant=lambda d: save(dropped(), d / "drop.onnx")),
    M("label smoothing of 0.99, prepare", PREPARE + "--label-smoothing 0.99", 0, ["OT3130", "0.99"]),
    P("the betas exchanged, Python",
      "ot.prepare('mlp.onnx', optimizer=ot.AdamW(betas=(0.999, 0.9)))", 0, ["OT3130", "beta1 0.999"],
      "optimizer=ot.AdamW(betas=(0.9, 0.999))", "ot.prepare('mlp.onnx', {fix})"),
    P("label smoothing of 0.99, Python",
      "ot.load('mlp.onnx').compile(loss=ot.losses.CrossEntropy(label_smoothing=0.99)).fit(x, y, epochs=1)", 0,
      ["OT3130", "0.99"]),
]


def dropped():
    m = dense(4, 3, "Relu", "h")
    m.graph.node.append(h.make_node("Dropout", ["h", "ratio"], ["d"], "drop"))
    m.graph.node.append(h.make_node("Gemm", ["d", "out.weight"], ["logits"], "out"))
    m.graph.output[0].name = "logits"
    m.graph.initializer.extend([numpy_helper.from_array(np.float32(0.99), "ratio"),
                                numpy_helper.from_array(np.eye(3, dtype=np.float32), "out.weight")])
    return m


LONG = "onnxtrain train mlp.onnx --data data.npz --epochs 40 --out o "
SCHEDULES = [
    M("gamma for every update", LONG + "--schedule exponential --schedule-arg gamma=0.8", 0,
      ["OT3128", "exponential", "every update, not every epoch"], "--schedule-arg gamma=0.9",
      LONG + "--schedule exponential {fix}7"),
    M("milestones in epochs of a longer run", D + "--schedule multistep --schedule-arg milestones=300,600", 0,
      ["OT3128", "300", "4 updates", "no effect"], "--schedule constant", D + "{fix}"),
    M("steps beyond the run", D + "--schedule step --schedule-arg step_size=1000", 0,
      ["OT3128", "1000", "no effect"], "--schedule constant", D + "{fix}"),
    M("a warm-up beyond a constant run", D + "--schedule-arg warmup_steps=5000", 0,
      ["OT3128", "warm-up", "5000", "4 updates"], "--schedule-arg warmup_steps=0", D + "{fix}"),
    P("a schedule that ends early, Python",
      "m = ot.load('mlp.onnx').compile(schedule={'kind': 'linear', 'total_steps': 8}); m.fit(x, y, epochs=10)", 0,
      ["OT3128", "after epoch", "of 10"]),
]


def in_type(build, elem, ending=None):
    """The model with weights and data of another type; the scores are wide again."""
    def make():
        m = build()
        for i in m.graph.initializer:
            w = numpy_helper.to_array(i)
            i.CopyFrom(h.make_tensor(i.name, elem, w.shape, w.flatten().astype(np.float64)))
        m.graph.node.insert(0, h.make_node("Cast", ["x"], ["x16"], "narrow", to=elem))
        m.graph.node[1].input[0] = "x16"
        m.graph.node[-1].output[0] = "last"
        m.graph.node.append(h.make_node("Cast", ["last"], [m.graph.output[0].name], "wide", to=T.FLOAT))
        return m
    return make


HALF = model("half.onnx", in_type(lambda: dense(4, 3, name="logits"), T.FLOAT16))
BRAIN = model("brain.onnx", in_type(lambda: dense(4, 3, name="logits"), T.BFLOAT16))
TYPED = "onnxtrain train {} --data data.npz --epochs 3 --optimizer sgd --lr {} --out o "
LOST = [
    M("float16 weights that do not move", TYPED.format("half.onnx", "1e-5"), 0,
      ["OT3131", "float16", "learning rate is 1"], "--lr 1e-2", TYPED.format("half.onnx", "1e-5").replace(
          "--lr 1e-5 ", "") + "{fix}", plant=HALF),
    M("bfloat16 weights that do not move", TYPED.format("brain.onnx", "1e-4"), 0, ["OT3131", "bfloat16"], plant=BRAIN),
    M("float32 weights that do not move", TYPED.format("mlp.onnx", "1e-9"), 0, ["OT3131", "float32"], "--lr 1e-3",
      TYPED.format("mlp.onnx", "1e-3")),
    P("float16 weights that do not move, Python",
      "ot.load('half.onnx').compile(optimizer=ot.SGD(lr=1e-5)).fit(x, y, epochs=2)", 0, ["OT3131", "float16"],
      plant=HALF),
]


def days(n=120):
    d = np.datetime64("2026-01-01") + np.arange(n)
    return np.array([int(str(v).replace("-", "")) for v in d])


def with_column(values):
    return lambda: np.column_stack([x()[:, :3].astype(np.float64), values]).astype(np.float64)


STAMPS = 1763500000 + np.arange(120) * 61
WHOLE = [
    M("timestamps in float32", N, 0, ["OT3132", "column 3 of 'x'", "16,777,216", "rounded by up to"],
      plant=npz("v.npz", x=with_column(STAMPS), y=lambda: y())),
    M("timestamps as whole numbers", N, 0, ["OT3132", "16,777,216"],
      plant=npz("v.npz", x=lambda: np.column_stack([(x()[:, :3] * 100).astype(np.int64), STAMPS]), y=lambda: y())),
    M("timestamps in a table", V, 0, ["OT3132", "'d'"],
      plant=table(lambda t: [t[0], *[",".join([*line.split(",")[:3], str(1763500000 + 61 * k), line.split(",")[4]])
                                     for k, line in enumerate(t[1:])]])),
    M("ids of accounts in a table", V, 0, ["OT3132", "'d'", "become equal"],
      plant=table(lambda t: [t[0], *[",".join([*line.split(",")[:3], str(9007000001 + 7 * (k * 37 % 120)),
                                               line.split(",")[4]]) for k, line in enumerate(t[1:])]])),
    M("dates as numbers", V, 0, ["OT3132", "'d'", "dates written as numbers", "2026-11-18"],
      plant=table(lambda t: [t[0], *[",".join([*line.split(",")[:3], str(days()[k]), line.split(",")[4]])
                                     for k, line in enumerate(t[1:])]])),
    P("timestamps in float32, Python",
      "s = 1763500000 + 61.0 * np.arange(120); ot.load('mlp.onnx').compile().fit("
      "np.column_stack([x[:, :3], s]).astype('f8'), y, epochs=1)", 0, ["OT3132", "column 3 of 'x'"]),
]

CASES = SETTINGS + SCHEDULES + LOST + WHOLE
