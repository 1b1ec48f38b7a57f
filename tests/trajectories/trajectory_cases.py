"""The architectures of the trajectories: data, loss and optimizer of each, in words that both the
dumping tool (torch) and the test (onnxtrain) understand. Needs numpy only.

Data come from numpy's frozen legacy generator, so both sides draw the same numbers."""

from dataclasses import dataclass, field

import numpy as np

STEPS = 10


@dataclass
class Section:
    """One training section: what `ot.prepare` is told."""

    optimizer: tuple  # (name in onnxtrain, arguments)
    loss: list = field(default_factory=lambda: [{"kind": "cross_entropy"}])
    only: str = ""
    schedule: dict = None
    clip_norm: float = 0.0
    clip_value: float = 0.0
    accumulate: int = 1


@dataclass
class Case:
    net: str
    inputs: dict  # name -> (kind, shape ...)
    targets: dict
    sections: list
    outputs: tuple = ("y",)
    batch_axis: dict = field(default_factory=dict)  # 0 unless said; None: not a batch
    open_batch: bool = True
    permute: bool = True  # the loss does not care about the order of the batch


def draw(spec, rng):
    kind, *rest = spec
    if kind == "normal":
        return rng.standard_normal(rest[0]).astype(np.float32)
    if kind == "unit":
        return rng.random_sample(rest[0]).astype(np.float32)
    if kind == "bits":
        return (rng.random_sample(rest[0]) < 0.5).astype(np.float32)
    if kind == "bool":
        return rng.random_sample(rest[0]) < 0.7
    if kind == "full":
        return np.full(rest[1], rest[0], np.float32)
    if kind == "ints":
        return rng.randint(0, rest[0], rest[1]).astype(np.int64)
    if kind == "ignored":  # labels, a third of them ignored
        y = rng.randint(0, rest[0], rest[1]).astype(np.int64)
        return np.where(rng.random_sample(rest[1]) < 0.3, -100, y)
    if kind == "lengths":  # a mask of 1 ... 1 0 ... 0
        n, t = rest[0]
        return (np.arange(t) < rng.randint(2, t + 1, (n, 1))).astype(np.int64)
    raise ValueError(kind)


def feeds(case, step, targets=True):
    rng = np.random.RandomState(1000 + step)
    both = dict(case.inputs, **(case.targets if targets else {}))
    return {name: draw(spec, rng) for name, spec in both.items()}


def one(optimizer, loss="cross_entropy", **more):
    terms = [{"kind": loss}] if isinstance(loss, str) else loss
    return [Section(optimizer, terms, **more)]


def image(c, s=8, n=6):
    return {"x": ("normal", (n, c, s, s))}


def labels(k, n=6):
    return {"label": ("ints", k, (n,))}


BCE = "bce_logits"
VISION = {
    "mlp": Case("Mlp", {"x": ("normal", (8, 12))}, labels(5, 8), one(("SGD", dict(lr=0.1)))),
    "lenet": Case("LeNet", image(1, 16), labels(10), one(
        ("SGD", dict(lr=0.05, momentum=0.9, weight_decay=1e-3)),
        [{"kind": "cross_entropy", "class_weights": [0.5 + 0.1 * k for k in range(10)], "label_smoothing": 0.1}])),
    "resnet": Case("ResNet", image(3, 12, 8), labels(4, 8), one(
        ("SGD", dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)),
        schedule={"kind": "cosine", "total_steps": 10, "warmup_steps": 3})),
    "mobilenet": Case("MobileNet", image(3, 12, 8), labels(4, 8), one(
        ("RMSprop", dict(lr=2e-3, alpha=0.9, eps=1e-3, momentum=0.9, centered=True, weight_decay=1e-4)),
        schedule={"kind": "exponential", "gamma": 0.97})),
    "efficientnet": Case("EfficientNet", image(3, 12, 8), labels(4, 8), one(
        ("RMSprop", dict(lr=2e-3, alpha=0.95, eps=1e-3, momentum=0.5)),
        [{"kind": "cross_entropy", "label_smoothing": 0.1}])),
    "convnext": Case("ConvNeXt", image(3, 12), labels(4), one(
        ("AdamW", dict(lr=2e-3, weight_decay=0.05, no_decay_on_bias_and_norm=True)), clip_norm=1.0,
        schedule={"kind": "linear", "total_steps": 12, "start_factor": 1.0, "end_factor": 0.1})),
    "vit": Case("Vit", image(3), labels(5), one(
        ("AdamW", dict(lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)), clip_norm=0.5,
        schedule={"kind": "onecycle", "total_steps": 12, "max_lr": 3e-3})),
    "unet": Case("UNet", image(2, 8, 4), {"label": ("bits", (4, 1, 8, 8))}, one(("Adam", dict(lr=5e-3)), BCE)),
    "superres": Case("SuperResolution", image(1, 7, 4), {"label": ("normal", (4, 1, 14, 14))}, one(
        ("Adam", dict(lr=3e-3, weight_decay=1e-2)), "l1", schedule={"kind": "step", "step_size": 4, "gamma": 0.5})),
    "densenet": Case("DenseNet", image(2), labels(3), one(
        ("SGD", dict(lr=0.02, momentum=0.8, dampening=0.1)),
        schedule={"kind": "multistep", "milestones": [3, 7], "gamma": 0.3})),
    "autoencoder": Case("Autoencoder", {"x": ("normal", (8, 20))}, {}, one(
        ("SGD", dict(lr=0.2, momentum=0.9, nesterov=True)), [{"kind": "mse", "label": "x"}])),
    "vae": Case("Vae", {"x": ("unit", (6, 1, 8, 8)), "noise": ("normal", (6, 3))}, {}, one(
        ("Adam", dict(lr=4e-3)), [{"kind": BCE, "output": "recon", "label": "x", "reduction": "sum", "weight": 1 / 6},
                                  {"kind": "VaeKl", "inputs": ["mu", "logvar"], "weight": 0.5}]),
        outputs=("recon", "mu", "logvar")),
    "gan": Case("Gan", {"real": ("normal", (8, 8)), "z": ("normal", (8, 4))},
                {"ones": ("full", 1.0, (8, 1)), "zeros": ("full", 0.0, (8, 1))},
                [Section(("Adam", dict(lr=2e-3, betas=(0.5, 0.999))),
                         [{"kind": BCE, "output": "d_real", "label": "ones"},
                          {"kind": BCE, "output": "d_fake", "label": "zeros"}], only="dis.*"),
                 Section(("Adam", dict(lr=1e-3, betas=(0.5, 0.999))),
                         [{"kind": BCE, "output": "d_fake", "label": "ones"}], only="gen.*")],
                outputs=("d_real", "d_fake")),
    "mixer": Case("Mixer", image(3), labels(5), one(("Lion", dict(lr=1e-3, weight_decay=0.1)))),
}

TOKENS = {"ids": ("ints", 20, (4, 6))}
SEQUENCE = {
    "bert": Case("Bert", {"ids": ("ints", 30, (4, 8)), "kinds": ("ints", 2, (4, 8)), "mask": ("lengths", (4, 8))},
                 {"label": ("ignored", 30, (4, 8))}, one(
        ("Lamb", dict(lr=1e-2, weight_decay=0.01)), [{"kind": "cross_entropy", "ignore_index": -100}],
        schedule={"kind": "polynomial", "total_steps": 12, "power": 2.0})),
    "gpt": Case("Gpt", {"ids": ("ints", 26, (3, 10))}, {"label": ("ints", 26, (3, 10))}, one(
        ("AdamW", dict(lr=5e-3, weight_decay=0.1, amsgrad=True)), clip_norm=1.0, accumulate=2)),
    "llama": Case("Llama", TOKENS, {"label": ("ints", 20, (4, 6))}, one(
        ("Lion", dict(lr=2e-3, betas=(0.95, 0.98), weight_decay=0.05)))),
    "lstm": Case("Lstm", {"ids": ("ints", 15, (5, 7))}, labels(4, 5),
                 one(("Adam", dict(lr=1e-2, amsgrad=True)), clip_norm=2.0)),
    "gru": Case("Gru", {"x": ("normal", (6, 5, 6))}, {"label": ("normal", (5, 1))}, one(
        ("Adagrad", dict(lr=5e-2, lr_decay=0.05)), "mse"), batch_axis={"x": 1}),
    "birnn": Case("BiRnn", {"x": ("normal", (6, 4, 5))}, labels(3, 4), one(
        ("RMSprop", dict(lr=3e-3))), batch_axis={"x": 1}),
    "tcn": Case("Tcn", {"x": ("normal", (4, 3, 16))}, {"label": ("normal", (4, 2, 16))}, one(
        ("SGD", dict(lr=0.05, weight_decay=1e-2)), [{"kind": "huber", "delta": 0.7}], clip_value=0.05)),
    "wavenet": Case("WaveNet", {"ids": ("ints", 12, (3, 14))}, {"label": ("ints", 12, (3, 14))}, one(
        ("Adam", dict(lr=5e-3, betas=(0.8, 0.99))), schedule={"kind": "exponential", "gamma": 0.9})),
    "seq2seq": Case("Seq2Seq", {"src": ("ints", 12, (4, 6)), "tgt": ("ints", 14, (4, 5))},
                    {"label": ("ints", 14, (4, 5))}, one(("Adagrad", dict(lr=5e-2, weight_decay=1e-3)),
                                                         clip_value=0.1)),
    "translator": Case("Translator", {"src": ("ints", 12, (4, 6)), "tgt": ("ints", 14, (4, 5))},
                       {"label": ("ints", 14, (4, 5))}, one(("AdamW", dict(lr=4e-3)))),
}

OTHER = {
    "siamese": Case("Siamese", {"a": ("normal", (6, 2, 8)), "b": ("normal", (6, 2, 8))}, {"same": ("bits", (6,))}, one(
        ("Adagrad", dict(lr=2e-2, initial_accumulator_value=0.1)),
        [{"kind": "Contrastive", "inputs": ["similarity", "same"]}]), outputs=("similarity",)),
    "dlrm": Case("Dlrm", {"dense": ("normal", (8, 4)), "ids": ("ints", 7, (8, 3))}, {"label": ("bits", (8, 1))}, one(
        ("Adagrad", dict(lr=5e-2, initial_accumulator_value=0.05, weight_decay=1e-4)), BCE)),
    "moe": Case("Moe", {"x": ("normal", (8, 8))}, labels(3, 8), one(("Lamb", dict(lr=2e-2)))),
    "gcn": Case("Gcn", {"x": ("normal", (9, 5)), "edges": ("ints", 9, (2, 24))}, {"label": ("ints", 3, (9,))}, one(
        ("SGD", dict(lr=0.1))), batch_axis={"edges": None}, permute=False),
    "mdn": Case("Mdn", {"x": ("normal", (8, 3))}, {"target": ("normal", (8, 1))}, one(
        ("Adam", dict(lr=1e-2)), [{"kind": "MdnLoss", "inputs": ["logpi", "mu", "sigma", "target"]}]),
        outputs=("logpi", "mu", "sigma")),
    "deepsets": Case("DeepSets", {"x": ("normal", (5, 6, 4)), "mask": ("bool", (5, 6))}, {"label": ("normal", (5, 2))},
                     one(
        ("SGD", dict(lr=0.02, momentum=0.9, nesterov=True)), "mse")),
    "highway": Case("Highway", {"x": ("normal", (10, 6))}, {"label": ("bits", (10, 1))}, one(
        ("SGD", dict(lr=0.3, momentum=0.5)), "bce")),
}

CASES = {**VISION, **SEQUENCE, **OTHER}
