"""A Keras callback that writes training files during `fit`."""

import os

import keras

from ..errors import UsageError
from .from_keras.conversion import convert


class Checkpoint(keras.callbacks.Callback):
    """Writes the training as it stands to `path` at the end of every epoch, or every `every` batches.

    The file goes on with `onnxtrain train`, `ot.Trainer`, or `ot.to_keras`: weights, optimizer state and iteration
    carry over; the order of the rows is the receiver's. `{epoch}` in the path is the number of the epoch, from 1,
    `{batch}` that of the batch; what Keras logs (`{val_loss:.3f}`) has its name. The first file is compared with Keras
    as `from_keras` does; later ones are that file with the state of the moment.
    """

    def __init__(self, path, every=None, inputs=None, targets=None, sample_weight=None):
        super().__init__()
        self.path, self.every = os.fspath(path), every
        self.examples = (inputs, targets, sample_weight)
        self._file, self._state = None, None

    def on_train_batch_end(self, batch, logs=None):
        if self.every and (batch + 1) % self.every == 0:
            self.write(self._epoch, {"batch": batch + 1, **(logs or {})})

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch

    def on_epoch_end(self, epoch, logs=None):
        if not self.every:
            self.write(epoch, logs)

    _epoch = 0

    def write(self, epoch=0, logs=None):
        """The file now."""
        path = self._path({"epoch": epoch + 1, **(logs or {})})
        if self._file is None:
            self._file = convert(self.model, *self.examples)
            self._variables = _variables(self.model, self._file)
        else:
            from .to_keras.rebuild import stored_info

            info = stored_info(self._file)
            entries = [*info["weights"], *info["optimizer"]["variables"]]
            for entry, v in zip(entries, self._variables):
                self._set(entry, v)
            if info["optimizer"]["scheduled"]:
                rate = self.model.optimizer.learning_rate
                self._put("learning_rate", keras.ops.convert_to_numpy(rate))
        part = path + ".part"
        self._file.save(part)
        os.replace(part, path)

    def _path(self, known):
        try:
            return self.path.format(**known)
        except KeyError as e:
            raise UsageError(f"the path '{self.path}' names {e.args[0]}, which fit does not log here", "OT1606",
                             f"there are {', '.join(known)}") from e

    def _set(self, entry, variable):
        array = keras.ops.convert_to_numpy(variable)
        self._put(entry["name"], array if entry["layout"] is None else array.transpose(entry["layout"]))

    def _put(self, name, array):
        import numpy as np

        from ..values import from_native, to_native

        like = from_native(self._file._m.initializer(name))
        array = np.array(np.asarray(array).astype(like.dtype), order="C").reshape(like.shape)
        self._file._m.set_initializer(name, to_native(array, name))


def _variables(model, file):
    from .from_keras.training import optimizer_variables
    from .to_keras.rebuild import weights_of

    return [*weights_of(model), *optimizer_variables(model.optimizer)]
