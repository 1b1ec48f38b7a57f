"""The recipes that make.py records: calls of `prepare` from Python, from C and on the command line."""

OPTIMIZERS = {
    "sgd": "ot.SGD(lr=0.1)", "sgd momentum": "ot.SGD(lr=0.1, momentum=0.9)",
    "sgd nesterov": "ot.SGD(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)",
    "sgd dampening": "ot.SGD(lr=0.1, momentum=0.9, dampening=0.3)", "sgd decay": "ot.SGD(lr=0.1, weight_decay=0.1)",
    "name momentum": "'momentum'", "name nesterov": "'nesterov'", "name adamw": "'adamw'",
    "adam": "ot.Adam(lr=0.01)", "adam all": "ot.Adam(lr=0.01, betas=(0.8, 0.9), eps=1e-5, weight_decay=0.1)",
    "adam amsgrad": "ot.Adam(lr=0.01, amsgrad=True)", "adam keras": "ot.Adam(lr=0.01, style='keras')",
    "adam keras all": "ot.Adam(lr=0.01, style='keras', weight_decay=0.01, amsgrad=True)",
    "adamw": "ot.AdamW(lr=0.01)", "adamw keras": "ot.AdamW(lr=0.01, style='keras')",
    "adamw amsgrad": "ot.AdamW(lr=0.01, amsgrad=True, weight_decay=0.2)",
    "adamw no decay": "ot.AdamW(lr=0.01, no_decay_on_bias_and_norm=True)",
    "adamw overrides": "ot.AdamW(lr=0.01, overrides={'*.bias': {'weight_decay': 0.0, 'lr_scale': 0.5}})",
    "adagrad": "ot.Adagrad(lr=0.1)", "adagrad keras": "ot.Adagrad(style='keras')",
    "adagrad all": "ot.Adagrad(lr=0.1, lr_decay=0.01, eps=1e-6, initial_accumulator_value=0.1, weight_decay=0.01)",
    "rmsprop": "ot.RMSprop(lr=0.01)", "rmsprop momentum": "ot.RMSprop(lr=0.01, momentum=0.9)",
    "rmsprop centered": "ot.RMSprop(lr=0.01, centered=True)",
    "rmsprop all": "ot.RMSprop(lr=0.01, alpha=0.9, eps=1e-5, momentum=0.5, centered=True, weight_decay=0.01)",
    "rmsprop keras": "ot.RMSprop(style='keras')",
    "rmsprop keras all": "ot.RMSprop(style='keras', momentum=0.5, centered=True)",
    "lion": "ot.Lion(lr=0.01, weight_decay=0.1)", "lamb": "ot.Lamb(lr=0.01, weight_decay=0.1)",
    "onnx adam": "ot.OnnxAdam(lr=0.01, norm_coefficient=0.01, norm_coefficient_post=0.02)",
    "onnx adam t0": "ot.OnnxAdam(lr=0.01, t0=0)", "onnx momentum": "ot.OnnxMomentum(lr=0.1, beta=0.5)",
    "onnx nesterov": "ot.OnnxMomentum(lr=0.1, mode='nesterov', norm_coefficient=0.01, t0=2)",
    "onnx adagrad": "ot.OnnxAdagrad(lr=0.1, decay_factor=0.1, norm_coefficient=0.01)",
    "a graph": "'models/rule.onnx'",
}

SCHEDULES = {
    "constant": "'constant'", "step": "{'kind': 'step', 'step_size': 2, 'gamma': 0.5}",
    "multistep": "ot.Schedule('multistep', {'gamma': 0.3}, [1, 3])",
    "exponential": "{'kind': 'exponential', 'gamma': 0.9}",
    "cosine": "ot.Schedule('cosine', {'total_steps': 5, 'min_lr': 0.001})",
    "linear": "ot.Schedule('linear', {'total_steps': 4, 'start_factor': 0.5, 'end_factor': 0.1})",
    "polynomial": "ot.Schedule('polynomial', {'total_steps': 5, 'power': 2})",
    "onecycle": "ot.Schedule('onecycle', {'total_steps': 6, 'max_lr': 0.2})",
    "onecycle all": "ot.Schedule('onecycle', {'total_steps': 6, 'pct_start': 0.4, 'div_factor': 10, "
                    "'final_div_factor': 100, 'three_phase': 1, 'anneal_linear': 1})",
    "warm-up": "ot.Schedule('cosine', {'total_steps': 6, 'warmup_steps': 3, 'warmup_start': 0.2})",
    "warm-up constant": "ot.Schedule('constant', {'warmup_steps': 3})",
}

MLP_LOSSES = {  # loss -> array of the target
    "'auto'": "class3", "'cross_entropy'": "class3", "ot.losses.CrossEntropy(label_smoothing=0.1)": "class3",
    "ot.losses.CrossEntropy(weight=[1, 2, 0.5], ignore_index=1)": "class3",
    "ot.losses.CrossEntropy(reduction='sum')": "class3", "ot.losses.NLL(weight=[1, 2, 3])": "class3",
    "'mse'": "real3", "ot.losses.MSE(reduction='sum')": "real3", "ot.losses.L1()": "real3",
    "ot.losses.Huber(delta=0.5)": "real3", "ot.losses.BCELogits()": "unit3", "ot.losses.KL()": "share3",
    "ot.losses.Hinge()": "sign3", "[(2.0, 'mse'), (0.5, 'l1')]": "real3",
}

OTHER = [  # (name, call of Python, feeds)
    ("two heads", "ot.prepare('models/heads.onnx', loss=[2.0 * ot.losses.CrossEntropy(output='kind'), "
     "0.5 * ot.losses.MSE(output='size', label='goal')])", {"x": "x4", "label": "class3", "goal": "real2"}),
    ("softmax", "ot.prepare('models/heads.onnx', loss='auto')", {"x": "x4", "label": "class3"}),
    ("sigmoid", "ot.prepare('models/heads.onnx', loss={'loss': 'bce', 'output': 'chance'})",
     {"x": "x4", "label": "unit1"}),
    ("sigmoid logits", "ot.prepare('models/heads.onnx', loss=ot.losses.BCELogits(output='chance'))",
     {"x": "x4", "label": "unit1"}),
    ("kl of softmax", "ot.prepare('models/heads.onnx', loss=ot.losses.KL(output='kind'))",
     {"x": "x4", "label": "share3"}),
    ("loss graph", "ot.prepare('models/mlp.onnx', loss='models/loss.onnx')", {"x": "x4", "goal": "real3"}),
    ("label name", "ot.prepare('models/mlp.onnx', label='truth')", {"x": "x4", "truth": "class3"}),
    ("sections", "ot.prepare(ot.prepare('models/mlp.onnx', only='fc1.*', optimizer=ot.SGD(lr=0.1)), only=['fc2.*'], "
     "optimizer=ot.Adam(lr=0.01), append=True)", {"x": "x4", "label": "class3", "label_1": "class3"}),
    ("words", "ot.prepare('models/words.onnx', optimizer=ot.AdamW(lr=0.01))", {"ids": "ids", "label": "next_ids"}),
    ("words lowered", "ot.prepare('models/words.onnx', optimizer=ot.AdamW(lr=0.01), lowered=True, dims={'T': 5})",
     {"ids": "ids", "label": "next_ids"}),
    ("words lowered by shape", "ot.prepare('models/words.onnx', lowered=True, dims={'ids': [8, 5]})",
     {"ids": "ids", "label": "next_ids"}),
    ("branch taken", "ot.prepare('models/branches.onnx', loss='mse', optimizer=ot.SGD(lr=0.001))",
     {"x": "x3", "c": "yes", "label": "real3"}),
    ("loop taken", "ot.prepare('models/branches.onnx', loss='mse', optimizer=ot.SGD(lr=0.001), lowered=True)",
     {"x": "x3", "c": "no", "label": "real3"}),
    ("opset 6", "ot.prepare('models/old.onnx', loss='mse', optimizer=ot.SGD(lr=0.1))",
     {"x": "old", "label": "real_old"}),
    ("float16", "ot.prepare('models/half.onnx', loss='cross_entropy', optimizer=ot.AdamW(lr=0.01), clip_norm=1.0)",
     {"x": "x4_half", "label": "class3"}),
    ("fixed batch", "ot.prepare('models/fixed.onnx')", {"x": "x4", "label": "class3"}),
    ("fixed batch as it is", "ot.prepare('models/fixed.onnx', mode='as_is')", {"x": "x4", "label": "class3"}),
    ("recurrent", "ot.prepare('models/lstm.onnx', optimizer=ot.RMSprop(lr=0.01))",
     {"xt": "time_first", "label": "class3"}),
    ("recurrent lowered", "ot.prepare('models/lstm.onnx', optimizer=ot.RMSprop(lr=0.01), lowered=True)",
     {"xt": "time_first", "label": "class3"}),
]

PLAIN = {  # arguments of prepare beside model and optimizer, over three models
    "clip norm": "clip_norm=0.5", "clip value": "clip_value=0.01", "both clips": "clip_norm=0.5, clip_value=0.01",
    "accumulate": "accumulate=2, clip_norm=0.5, schedule={'kind': 'exponential', 'gamma': 0.9}",
    "as it is": "mode='as_is'", "reset": "reset=True, seed=5", "lowered": "lowered=True",
    "lowered batch": "lowered=True, batch=8", "lowered all": "lowered=True, clip_norm=0.5, clip_value=0.05, "
    "accumulate=2, schedule={'kind': 'cosine', 'total_steps': 5, 'warmup_steps': 2}",
}
THREE = {"mlp": ("ot.AdamW(lr=0.01)", {"x": "x4", "label": "class3"}, "fc1.*"),
         "cnn": ("ot.SGD(lr=0.05, momentum=0.9)", {"x": "image", "label": "class3"}, "bn.*"),
         "transformer": ("ot.Adam(lr=0.01)", {"x": "block", "label": "class4"}, "ln?.*")}

FLAGS = [  # of `onnxtrain prepare`, model, feeds
    ([], "mlp"), (["--loss", "cross_entropy", "--optimizer", "sgd", "--lr", "0.1"], "mlp"),
    (["--optimizer", "momentum", "--momentum", "0.8", "--weight-decay", "0.01", "--clip", "1"], "mlp"),
    (["--optimizer", "nesterov", "--clip-value", "0.1", "--accumulate", "2"], "mlp"),
    (["--optimizer", "rmsprop", "--momentum", "0.5", "--schedule", "cosine", "--total-steps", "8"], "mlp"),
    (["--optimizer", "lamb", "--schedule", "multistep", "--schedule-arg", "milestones=1,3", "--schedule-arg",
      "gamma=0.5"], "mlp"),
    (["--label-smoothing", "0.1", "--ignore-index", "2", "--freeze", "fc1.bias", "--label", "truth"], "mlp"),
    (["--reset", "--seed", "9", "--only", "fc2.*"], "mlp"), (["--as-is", "--lowered"], "mlp"),
    (["--optimizer", "models/rule.onnx", "--loss", "models/loss.onnx"], "mlp"),
    (["--optimizer", "adagrad", "--lowered", "--batch", "8"], "cnn"), (["--optimizer", "lion"], "cnn"),
    (["--optimizer", "adam", "--lowered", "--dim", "T=5"], "words"),
    (["--loss", "mse", "--loss-input", "size"], "heads"),
]

JSON = [  # recipes as C takes them: short forms and keys of other names
    ({}, "mlp"), ({"loss": "cross_entropy", "optimizer": "sgd", "schedule": "constant"}, "mlp"),
    ({"losses": ["cross_entropy"], "optimizer": {"kind": "adam", "lr": 0.01, "betas": [0.8, 0.9]}}, "mlp"),
    ({"loss": [{"kind": "cross_entropy", "class_weights": [1, 2, 3]}],
      "optimizer": {"kind": "adamw", "overrides": {"*.bias": {"weight_decay": 0}}}}, "mlp"),
    ({"optimizer": {"kind": "adamw", "overrides": [{"glob": "fc1.*", "lr_scale": 0.1}]},
      "schedule": {"kind": "step", "numbers": {"step_size": 2}}, "freeze": "fc2.bias"}, "mlp"),
    ({"optimizer": {"kind": "nesterov", "momentum": 0.8, "nesterov": True}, "only": "fc2.*", "clip_norm": 1}, "mlp"),
    ({"optimizer": {"kind": "onnx_adam", "attributes": {"alpha": 0.8}, "t0": 0}, "seed": 4, "reset": True}, "mlp"),
    ({"schedule": {"kind": "multistep", "milestones": [1, 2], "gamma": 0.5}, "accumulate": 2, "batch": None}, "mlp"),
    ({"unbiased_batch_variance": False}, "cnn"), ({"unbiased_batch_variance": True, "lowered": True}, "cnn"),
    ({"unbiased_batch_variance": False, "lowered": True}, "cnn"),
    ({"lowered": True, "dims": {"T": 5}}, "words"), ({"loss": {"kind": "mse", "output": "size"}}, "heads"),
]

MODEL_FEEDS = {"mlp": {"x": "x4", "label": "class3"}, "cnn": {"x": "image", "label": "class3"},
               "words": {"ids": "ids", "label": "next_ids"}, "heads": {"x": "x4", "label": "real2"}}


def python_cases():
    mlp = MODEL_FEEDS["mlp"]
    for name, optimizer in OPTIMIZERS.items():
        for more in ("", ", lowered=True"):
            yield (f"mlp, {name}{', lowered' if more else ''}",
                   f"ot.prepare('models/mlp.onnx', optimizer={optimizer}{more})", mlp)
    for name, schedule in SCHEDULES.items():
        yield (f"mlp, schedule {name}",
               f"ot.prepare('models/mlp.onnx', optimizer=ot.SGD(lr=0.1), schedule={schedule})", mlp)
    for loss, target in MLP_LOSSES.items():
        yield (f"mlp, loss {loss}", f"ot.prepare('models/mlp.onnx', loss={loss}, optimizer=ot.Adam(lr=0.01))",
               {name: "x4" if name == "x" else target for name in ("x", "label", "label_1")})
    for model, (optimizer, feeds, frozen) in THREE.items():
        for name, more in {**PLAIN, "freeze": f"freeze={frozen!r}", "only": f"only=[{frozen!r}]"}.items():
            yield f"{model}, {name}", f"ot.prepare('models/{model}.onnx', optimizer={optimizer}, {more})", feeds
    yield from OTHER


def cases():
    """Every case as the table has it, without what it gives."""
    found = [{"name": name, "python": call, "feeds": feeds} for name, call, feeds in python_cases()]
    for flags, model in FLAGS:
        feeds = MODEL_FEEDS[model]
        if "--label" in flags:
            feeds = {"x": "x4", "truth": "class3"}
        if "models/loss.onnx" in flags:
            feeds = {"x": "x4", "goal": "real3"}
        found.append({"name": f"prepare {model} {' '.join(flags)}".strip(), "model": f"models/{model}.onnx",
                      "flags": flags, "feeds": feeds})
    found += [{"name": f"C {model} {k}", "model": f"models/{model}.onnx", "recipe": recipe,
               "feeds": MODEL_FEEDS[model]} for k, (recipe, model) in enumerate(JSON)]
    for case in found:
        case["convolution"] = "cnn" in str(case.get("python", case.get("model")))
    assert len({c["name"] for c in found}) == len(found)
    return found
