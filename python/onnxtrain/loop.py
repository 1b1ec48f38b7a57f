"""Epochs over batches that an iterator gives. (Epochs over arrays run in the library.)"""

import itertools
import json
import math
import os
import time

from .data import batch_feeds, columns, is_one_pass, is_text
from .errors import DataError, DivergedError, UsageError
from .values import to_native


class Batches:
    """Batches epoch by epoch: a loader is gone through again each time, a callable called, a generator continued."""

    def __init__(self, source, epochs, steps_per_epoch):
        self._source, self._limit = source, steps_per_epoch
        if is_one_pass(source) and not steps_per_epoch:
            if epochs not in (None, 1):
                raise UsageError("a generator can be gone through only once", "OT1157",
                                 "steps_per_epoch=N cuts it into epochs; or pass the function that makes it, "
                                 "or a list-like loader")
            epochs = 1
        self.epochs = 10 if epochs is None else epochs

    def __iter__(self):
        source = self._source
        batches = iter(source() if callable(source) and not hasattr(source, "__iter__") else source)
        return itertools.islice(batches, self._limit) if self._limit else batches


class RunLog:
    """The run folder of a training whose batches come from Python: checkpoints, metrics, the best model."""

    def __init__(self, trainer, out):
        self.out = out
        if out:
            trainer._enter(out)
            os.makedirs(os.path.join(out, "checkpoints"), exist_ok=True)
        self.epochs_before = max((e.get("epoch", 0) for e in self._entries()), default=0) if out else 0

    def _entries(self):
        try:
            with open(os.path.join(self.out, "metrics.jsonl"), encoding="utf-8") as f:
                return [json.loads(line) for line in f if line.endswith("}\n")]
        except FileNotFoundError:
            return []

    def epoch(self, trainer, entry):
        if not self.out:
            return
        trainer.save(os.path.join(self.out, "checkpoints", "last.train.onnx"))
        if entry["best"]:
            trainer.save(os.path.join(self.out, "checkpoints", "best.train.onnx"))
            trainer.export(os.path.join(self.out, "model.onnx"))
        row = {("train_loss" if k == "loss" else k): v for k, v in entry.items() if k != "best"}
        with open(os.path.join(self.out, "metrics.jsonl"), "a", encoding="utf-8") as f:
            f.write(json.dumps(row) + "\n")
        table = os.path.join(self.out, "metrics.csv")
        header = "" if os.path.exists(table) else ",".join(row) + "\n"
        with open(table, "a", encoding="utf-8") as f:
            f.write(header + ",".join(str(v) for v in row.values()) + "\n")


def _one_epoch(trainer, batches, epoch, limit):
    """Steps over the batches; (entry, stopped by the limit of steps)."""
    begin, total, rows, steps = time.perf_counter(), 0.0, 0, 0
    inputs, targets = trainer.inputs, trainer.targets
    for item in batches:
        feeds = batch_feeds(item, inputs, targets)
        missing = [n for n in (*inputs, *targets) if n not in feeds]
        if missing:
            raise DataError(f"a batch has no '{missing[0]}'; it has {', '.join(feeds) or 'nothing'}", "OT2106",
                            f"a batch is (x, y), or a dict with {', '.join((*inputs, *targets))}")
        size = len(next(iter(feeds.values())))
        if size == 0:  # a mean over nothing is not a number
            continue
        known = (*inputs, *targets)
        loss = trainer.step({k: trainer._t.adapt(k, to_native(v, k)) if k in known and not is_text(v) else v
                             for k, v in feeds.items()}).loss
        if not math.isfinite(loss):
            raise DivergedError(f"loss became {loss} at step {trainer.step_count} (epoch {epoch})", "OT3001",
                                "try a lower learning rate, or clip_norm=1 in prepare")
        total, rows, steps = total + loss * size, rows + size, steps + 1
        if limit and trainer.step_count >= limit:
            break
    if steps == 0:
        raise DataError(f"no batches in epoch {epoch}", "OT2101")
    seconds = time.perf_counter() - begin
    entry = {"epoch": epoch, "step": trainer.step_count, "steps": steps, "loss": total / rows,
             "lr": trainer._rate_or_zero(), "samples_per_second": rows / max(seconds, 1e-9), "seconds": seconds}
    return entry, bool(limit and trainer.step_count >= limit)


def fit_batches(trainer, source, valid, epochs, steps, patience, out, on_epoch, steps_per_epoch):
    """Trains on batches; the same result as `fit` on arrays gives."""
    if valid is not None and not isinstance(valid, (tuple, list)):
        raise UsageError("with an iterator, valid is (x, y): there is nothing to take a fraction of", "OT1157")
    batches, log, entries, best, best_epoch = (
        Batches(source, epochs, steps_per_epoch),
        RunLog(trainer, out),
        [],
        None,
        0,
    )
    for epoch in range(log.epochs_before + 1, log.epochs_before + batches.epochs + 1):
        entry, enough = _one_epoch(trainer, iter(batches), epoch, steps)
        watched, larger = entry["loss"], False
        if valid is not None:
            scores = trainer.evaluate(columns(*valid))
            scores.pop("confusion", None)
            entry.update({f"valid_{k}": v for k, v in scores.items()})
            larger = "accuracy" in scores
            watched = scores["accuracy"] if larger else scores["loss"]
        entry["best"] = best is None or (watched > best if larger else watched < best)
        if entry["best"]:
            best, best_epoch = watched, epoch
        entries.append(entry)
        log.epoch(trainer, entry)
        stop = on_epoch is not None and on_epoch(dict(entry))
        if enough or stop or (patience and epoch - best_epoch >= patience):
            break
    return {"epochs": entries, "best_epoch": best_epoch, "interrupted": False}
