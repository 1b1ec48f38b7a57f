"""What `fit` shows: a bar in a terminal or a notebook, or one line per epoch."""

import sys

from .callbacks import Callback

BAR = 24


def _notebook():
    """IPython's display function when this runs in a notebook; None otherwise."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import HTML, display

    return lambda text, handle: handle.update(HTML(text)) if handle else display(HTML(text), display_id=True)


def _number(key, value):
    if not isinstance(value, (int, float)):
        return str(value)
    return f"{100 * value:.2f} %" if key.endswith(("accuracy", "top5")) else f"{value:.4g}"


def epoch_words(logs):
    """'loss 0.1712   valid loss 0.0611   valid accuracy 98.13 %   4,012 samples/s'"""
    shown = ["loss", *(k for k in logs if k.startswith("valid_"))]
    words = [f"{k.replace('_', ' ')} {_number(k, logs[k])}" for k in shown if k in logs]
    return "   ".join([*words, f"{logs.get('samples_per_second', 0):,.0f} samples/s"])


def bar_words(epoch, epochs, logs):
    """'  3/10 [##########..............]  42 %  loss 0.0351  4,031/s'"""
    share = logs["batch"] / logs["batches"] if logs["batches"] else 0
    full = int(BAR * share)
    part = f"{100 * share:3.0f} %" if logs["batches"] else f"{logs['batch']} batches"
    return (f"{epoch + 1:3d}/{epochs} [{'#' * full}{'.' * (BAR - full)}] {part}  loss {logs['loss']:.4f}  "
            f"{logs['samples_per_second']:,.0f}/s")


class Progress(Callback):
    """verbose 1: a bar where there is a terminal or a notebook, lines elsewhere; 2: lines."""

    _attributes = ("stream", "epochs", "verbose", "notebook", "bar", "handle", "lines", "width")

    def __init__(self, verbose, epochs, stream=None):
        self.stream = stream or sys.stderr
        self.epochs, self.verbose = epochs, verbose
        self.notebook = _notebook() if verbose == 1 else None
        self.bar = verbose == 1 and not self.notebook and self.stream.isatty()
        self.handle, self.lines, self.width = None, [], 0

    @staticmethod
    def wanted(stream=None):
        """What verbose=None means: a bar where somebody looks, nothing in scripts and pipes."""
        return 1 if _notebook() or (stream or sys.stderr).isatty() else 0

    def on_plan(self, epochs):
        self.epochs = epochs

    def on_progress(self, epoch, logs=None):
        text = bar_words(epoch, self.epochs, logs)
        if self.notebook:
            self._show(text)
        elif self.bar:
            self.stream.write("\r" + text.ljust(self.width))
            self.stream.flush()
            self.width = len(text)

    def on_epoch_end(self, epoch, logs=None):
        line = f"{epoch + 1:3d}/{self.epochs} {logs['seconds']:6.1f} s   {epoch_words(logs)}"
        line += "   * best" if logs.get("best") else ""
        if self.verbose == 1 and not self._has_line(epoch + 1, logs["seconds"]):
            return
        self.lines.append(line)
        if self.notebook:
            return self._show("")
        self.stream.write(("\r" if self.bar else "") + line.ljust(self.width) + "\n")
        self.stream.flush()
        self.width = 0

    def _has_line(self, epoch, seconds):
        """Of many short epochs about twenty are shown, as on the command line."""
        return self.epochs <= 40 or seconds >= 2 or epoch in (1, self.epochs) or epoch % -(-self.epochs // 20) == 0

    def _show(self, running):
        import html

        text = "\n".join([*self.lines[-12:], running]).rstrip("\n")
        made = self.notebook(f"<pre>{html.escape(text)}</pre>", self.handle)
        self.handle = self.handle or made
