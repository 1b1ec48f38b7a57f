"""Hints name options of the command line; here the same in Python's words: `--batch 8` -> `batch_size=8`."""

import re
import shlex

# where the argument has another name, or there is a call instead
_NAMES = {"batch": "batch_size", "clip": "clip_norm", "dim": "dims", "label": "label", "no-shuffle": "shuffle=False",
          "allow-non-finite": "check_finite=False", "as-is": 'mode="as_is"', "lowered": "lowered=True",
          "reset": "reset=True", "patience": "patience", "for": "runtime"}
_LOSSES = {"cross_entropy": "CrossEntropy", "nll": "NLL", "mse": "MSE", "l1": "L1", "huber": "Huber", "bce": "BCE",
           "bce_logits": "BCELogits", "kl": "KL", "hinge": "Hinge"}


def _loss(v):
    """`y=mse:1024`: one term of several, with its weight."""
    output, _, term = v.partition("=")
    kind, _, weight = term.partition(":")
    if kind not in _LOSSES:
        return f"loss={v!r}" if v else "loss"
    return f"loss={weight or 1} * ot.losses.{_LOSSES[kind]}(output={output!r})"


def _class_with(argument):
    """An optimizer that has it."""
    name = argument.partition("=")[0]
    return {"momentum": "SGD", "dampening": "SGD", "nesterov": "SGD", "alpha": "RMSprop", "rho": "Adadelta"}.get(
        name, "AdamW")


_CALLS = {
    "loss": _loss,
    "class-weights": lambda v: f"loss=ot.losses.CrossEntropy(weight=[{v if v[:1].isdigit() else '1.0,2.0'}])",
    "layout": lambda v: "x.transpose(0, 3, 1, 2)",
    "label-offset": lambda v: f"give y {'-' if v.startswith('-') else '+'} {v.lstrip('+-')}" if v else "give y - 1",
    "map": lambda v: f"give arrays by the names of inputs: {{'{v.partition('=')[0] or 'INPUT'}': x}}",
    "drop": lambda v: f"table.drop(columns={v.split(',')!r})" if v else "leave columns out of the table",
    "target": lambda v: f"target={v!r}, or give that column as y" if v else "give the target as y",
    "loss-input": lambda v: f"loss=ot.losses.CrossEntropy(output={v!r})" if v else "the output of a loss",
    "resume": lambda v: f"ot.resume({v!r})" if v else "ot.resume(RUN)",
    "optimizer-arg": lambda v: f"optimizer=ot.{_class_with(v)}({v})" if v else "the optimizer's arguments",
    "schedule-arg": lambda v: f"schedule=ot.Schedule(..., {v})" if v else "the schedule's arguments",
    "lr": lambda v: f"optimizer=ot.AdamW(lr={v or '1e-3'})",
    "momentum": lambda v: f"optimizer=ot.SGD(momentum={v or '0.9'})",
    "weight-decay": lambda v: f"optimizer=ot.AdamW(weight_decay={v or '0.01'})",
    "ignore-index": lambda v: f"loss=ot.losses.CrossEntropy(ignore_index={v or '-100'})",
    "inputs": lambda v: "the feeds",
    "data": lambda v: f"load {v!r} with numpy" if v else "the data",
    "scale": lambda v: "scale x yourself",
    "fallback": lambda v: f'ot.fallback("{v or "onnxruntime"}")',
    "custom-ops": lambda v: "custom_ops=[LIB]",
}
# whole commands that have a call
_COMMANDS = {"onnxtrain prepare model.onnx -o model.train.onnx": 'ot.prepare("model.onnx")',
             "onnxtrain prepare MODEL -o MODEL.train.onnx": "ot.prepare(model)",
             "onnxtrain info MODEL --ops": "model.info", "onnxtrain info MODEL": "model.weights()",
             "onnxtrain run MODEL --inputs in.npz -o out.npz": "ot.Session(model).run(feeds)",
             "onnxtrain run MODEL --inputs in.npz": "ot.Session(model).run(feeds)",
             "onnxtrain train MODEL --data DATA": "ot.Trainer(model).fit(x, y)",
             "onnxtrain export MODEL -o plain.onnx": 'model.export("plain.onnx")',
             "--step --form compact": 'ot.export_step(model, path, form="compact")',
             "onnxtrain prepare MODEL --lr RATE --schedule KIND": "ot.prepare(model, schedule=...)"}
# any other command to type in a shell stays as it is
_FLAG = re.compile(r"(\bonnxtrain [a-z]+ [^;]*)|(?<![\w-])--([a-z][a-z-]*)"
                   r"(?:[ =](?!or\b|and\b|to\b|out\b)((?:[^\s;:?()]|:(?=\d))*[^\s,;:?()]))?")
_LOSS_ON = re.compile(r"--loss ([a-z0-9_]+) --loss-input ('[^']*'|[^\s;:?(),]+)")
_BETAS = re.compile(r"--optimizer-arg beta1=(\S+) --optimizer-arg beta2=([^\s;]+)")
_TWICE = re.compile(r"(dims=\{[^}]*\}) \(\1\)")  # a message that says both
# names behind one or several --freeze, up to the end of the clause
_FROZEN = re.compile(r"--freeze ((?:(?:--freeze )?(?:'[^']*'|[^\s',;]+)(?: +|(?=[,;]|$)))+)(?=[,;]|$)")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")


def _loss_on(m):
    """`--loss mse --loss-input s`: one loss on that tensor."""
    kind, name = m.group(1), m.group(2).strip("'")
    return f"loss=ot.losses.{_LOSSES[kind]}(output={name!r})" if kind in _LOSSES else m.group(0)


def _frozen(m):
    names = [n for n in shlex.split(m.group(1)) if n != "--freeze"]
    return f"freeze={(names[0] if len(names) == 1 else names)!r}"


def _one(m):
    command, flag, value = m.groups()
    if command:
        return command
    value = value or ""
    if flag in _CALLS:
        return _CALLS[flag](value)
    name = _NAMES.get(flag, flag.replace("-", "_"))
    if "=" in name:
        return f"{name} {value}".rstrip()
    if not value:
        return name
    if flag == "dim" and "=" in value:
        key, _, size = value.partition("=")
        return f"dims={{'{key}': {size}}}"
    if "," in value and all(_NUMBER.match(v) for v in value.split(",")):
        return f"{name}=[{', '.join(value.split(','))}]"
    return f"{name}={value if _NUMBER.match(value) else repr(value)}"


_shell = False


def for_shell():
    """From now on hints keep their flags: this process was started by the command line."""
    global _shell
    _shell = True


def in_python(text):
    if _shell:
        return text
    for command, call in _COMMANDS.items():
        text = text.replace(command, call)
    text = text.replace("add --label-offset", "--label-offset")
    text = _BETAS.sub(r"optimizer=ot.AdamW(betas=(\1, \2))", text)
    if "--" not in text:
        return text
    return _TWICE.sub(r"\1", _FLAG.sub(_one, _LOSS_ON.sub(_loss_on, _FROZEN.sub(_frozen, text))))
