"""Callbacks of `fit`, with the names that Keras gives them. Epochs are counted from 0 here, as there.

    model.fit(x, y, valid=0.1, callbacks=[ot.callbacks.EarlyStopping(monitor="valid_loss", patience=3)])
"""

import math

from .errors import UsageError

_LARGER = ("accuracy", "top5", "precision", "recall", "f1", "auc", "r2")


class Callback:
    """Override what you need. `self.model` is what `fit` was called on (a Model or a Trainer), `self.trainer` the
    Trainer; `self.stop_training = True` ends the training after the epoch, with everything saved."""

    model = trainer = None
    stop_training = False

    def on_train_begin(self, logs=None):
        """Before the first epoch."""

    def on_plan(self, epochs):
        """Once, when it is known how many epochs there will be."""

    def on_epoch_begin(self, epoch, logs=None):
        """Before every epoch."""

    def on_progress(self, epoch, logs=None):
        """While an epoch runs, a few times per second: batch, batches, loss, samples_per_second."""

    def on_epoch_end(self, epoch, logs=None):
        """After every epoch: loss, lr, valid_loss, valid_accuracy, ..."""

    def on_train_end(self, logs=None):
        """After the last epoch."""


class LambdaCallback(Callback):
    """A callback from functions: `LambdaCallback(on_epoch_end=lambda epoch, logs: print(epoch, logs["loss"]))`."""

    def __init__(self, **functions):
        for name, function in functions.items():
            if not name.startswith("on_") or not hasattr(Callback, name):
                known = [n for n in vars(Callback) if n.startswith("on_")]
                raise UsageError(f"a callback has no '{name}'", "OT4511", f"one of {', '.join(known)}")
            setattr(self, name, function)


def _value(logs, monitor):
    name = monitor.replace("val_", "valid_", 1) if monitor.startswith("val_") else monitor
    if name not in logs:
        raise UsageError(f"there is no '{monitor}' to watch; there are {', '.join(logs)}", "OT4510",
                         "validation data comes with fit(valid=0.1)" if name.startswith("valid_") else 'monitor="loss"')
    return logs[name]


class _Watching(Callback):
    def __init__(self, monitor, patience, min_delta, mode):
        if mode not in ("auto", "min", "max"):
            raise UsageError(f"mode is {mode!r}, it must be auto, min or max", "OT1152", 'mode="auto"')
        self.monitor, self.patience, self.min_delta = monitor, patience, abs(min_delta)
        self.larger = mode == "max" or (mode == "auto" and monitor.endswith(_LARGER))
        self.on_train_begin()

    def on_train_begin(self, logs=None):
        self.best, self.wait = None, 0

    def improved(self, logs):
        """Takes the value of this epoch; True when it is better than all before by more than min_delta."""
        value = _value(logs, self.monitor)
        gain = math.inf if self.best is None else (value - self.best) * (1 if self.larger else -1)
        if gain > self.min_delta:
            self.best, self.wait = value, 0
            return True
        self.wait += 1
        return False


class EarlyStopping(_Watching):
    """Stops after `patience` epochs without improvement. The best epoch's model is in the run folder (`out=`)."""

    def __init__(self, monitor="valid_loss", patience=0, min_delta=0.0, mode="auto"):
        super().__init__(monitor, patience, min_delta, mode)

    def on_epoch_end(self, epoch, logs=None):
        if not self.improved(logs) and self.wait >= max(1, self.patience):
            self.stop_training = True


class ReduceLROnPlateau(_Watching):
    """Multiplies the learning rate by `factor` after `patience` epochs without improvement."""

    def __init__(self, monitor="valid_loss", factor=0.1, patience=10, min_delta=1e-4, mode="auto", min_lr=0.0):
        super().__init__(monitor, patience, min_delta, mode)
        self.factor, self.min_lr = factor, min_lr

    def on_epoch_end(self, epoch, logs=None):
        if not self.improved(logs) and self.wait >= max(1, self.patience):
            self.trainer.lr = max(self.trainer.lr * self.factor, self.min_lr)
            self.wait = 0


class LearningRateScheduler(Callback):
    """Asks `schedule(epoch, lr)` for the learning rate of every epoch."""

    def __init__(self, schedule):
        self.schedule = schedule

    def on_epoch_begin(self, epoch, logs=None):
        self.trainer.lr = self.schedule(epoch, self.trainer.lr)


class CSVLogger(Callback):
    """A row per epoch in a csv file; of several processes rank 0 writes it."""

    writes = True

    def __init__(self, filename, append=False):
        self.filename, self.append, self._writer = filename, append, None

    def on_train_begin(self, logs=None):
        self._file = open(self.filename, "a" if self.append else "w", newline="")
        self._writer = None

    def on_epoch_end(self, epoch, logs=None):
        import csv

        row = {"epoch": epoch, **{k: v for k, v in logs.items() if k != "epoch"}}
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, list(row), extrasaction="ignore")
            if self._file.tell() == 0:
                self._writer.writeheader()
        self._writer.writerow(row)
        self._file.flush()

    def on_train_end(self, logs=None):
        self._file.close()


class Watch:
    """Tells a list of callbacks about one `fit`; what the library calls is `heard`."""

    def __init__(self, callbacks, model, trainer, on_epoch=None, epochs=10, resumed=False):
        self.callbacks, self.trainer, self.on_epoch = callbacks, trainer, on_epoch
        self.epochs, self.resumed, self.done = epochs, resumed, 0  # done: epochs of this fit
        for c in callbacks:
            if not hasattr(c, "on_epoch_end"):
                raise UsageError(f"{c!r} is no callback", "OT4511", "derive from ot.callbacks.Callback")
            c.model, c.trainer, c.stop_training = model, trainer, False

    def begin(self):
        for c in self.callbacks:
            c.on_train_begin()
            c.on_epoch_begin(0)

    def heard(self, said):
        """One JSON object of the library; True asks it to stop."""
        if "plan" in said:
            self.epochs = said["plan"]["epochs"]
            for c in self.callbacks:
                getattr(c, "on_plan", lambda epochs: None)(self.epochs)
            return False
        if "progress" in said:
            logs = said["progress"]
            for c in self.callbacks:
                c.on_progress(self.done, logs)
            return False
        stop = bool(self.on_epoch and self.on_epoch(said))
        for c in self.callbacks:
            c.on_epoch_end(self.done, said)
            stop = stop or c.stop_training
        self.done += 1
        last = (said["epoch"] if self.resumed else self.done) >= self.epochs
        for c in self.callbacks if not (stop or last) else ():
            c.on_epoch_begin(self.done)
        return stop

    def end(self):
        for c in self.callbacks:
            c.on_train_end()
