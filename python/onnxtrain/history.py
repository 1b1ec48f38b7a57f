"""What `fit` gives back."""

from .attributes import Closed
from .errors import UsageError


class History(Closed):
    """What `fit` gave: `.epochs` is a list of dicts, `history["loss"]` the values over epochs,
    `.history` all of them. `plot()` draws them (matplotlib); a notebook shows a table and a curve."""

    _attributes = ("epochs", "best_epoch", "interrupted", "constant_guess")

    def __init__(self, result):
        self.epochs, self.best_epoch, self.interrupted = result["epochs"], result["best_epoch"], result["interrupted"]
        self.constant_guess = result.get("constant_guess", {})  # metrics of a guess that is the same for every row

    @property
    def history(self):
        return {key: self[key] for key in (self.epochs[0] if self.epochs else ())}

    def __getitem__(self, key):
        return [e[key] for e in self.epochs]

    def __contains__(self, key):
        return bool(self.epochs) and key in self.epochs[0]

    def __len__(self):
        return len(self.epochs)

    def __repr__(self):
        return f"<history: {len(self.epochs)} epochs, best {self.best_epoch}>"

    def curves(self):
        """{title: keys} of the plots: losses together, every metric by itself, the learning rate."""
        keys = self.epochs[0] if self.epochs else {}
        plots = {"loss": [k for k in ("loss", "valid_loss") if k in keys]}
        for k in keys:
            if k.startswith("valid_") and k != "valid_loss":
                plots[k.replace("_", " ")] = [k]
        if "lr" in keys:
            plots["learning rate"] = ["lr"]
        return {title: names for title, names in plots.items() if names}

    def plot(self, axes=None):
        """Draws losses, metrics and learning rate; returns matplotlib's figure (axes: draw there instead)."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise UsageError("history.plot() needs matplotlib, which is not installed", "OT4512",
                             "pip install matplotlib") from None
        curves = self.curves()
        if axes is None:
            figure, axes = plt.subplots(1, max(1, len(curves)), figsize=(4.5 * max(1, len(curves)), 3.4), squeeze=False,
                                        layout="constrained")
            axes = axes[0]
        for axis, (title, keys) in zip(axes, curves.items()):
            for k in keys:
                axis.plot(self["epoch"], self[k], marker="o", markersize=3, label=k.replace("_", " "))
            if self.best_epoch and title != "learning rate":
                axis.axvline(self.best_epoch, linestyle=":", color="gray", label="best epoch")
            axis.set(title=title, xlabel="epoch")
            axis.legend()
        return axes[0].figure

    def _repr_html_(self):
        if not self.epochs:
            return "<p>no epoch</p>"
        import html

        keys = [k for k in self.epochs[0] if k not in ("steps", "best")]
        cell = lambda v: f"{v:.4g}" if isinstance(v, float) else html.escape(str(v))
        rows = "".join(f"<tr{' style=font-weight:bold' if e['epoch'] == self.best_epoch else ''}>"
                       + "".join(f"<td>{cell(e.get(k, ''))}</td>" for k in keys) + "</tr>" for e in self.epochs)
        head = "".join(f"<th>{html.escape(k.replace('_', ' '))}</th>" for k in keys)
        return f"{self._svg()}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _svg(self, width=420, height=160):
        """The losses as a small drawing."""
        lines = [(k, [v for v in self[k] if isinstance(v, (int, float))]) for k in self.curves()["loss"]]
        values = [v for _, line in lines for v in line]
        low, high = min(values), max(values)
        x = lambda k: 40 + (width - 50) * k / max(1, len(self.epochs) - 1)
        y = lambda v: 10 + (height - 30) * (1 - (v - low) / ((high - low) or 1))
        drawn = "".join(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
            f'{" ".join(f"{x(k):.1f},{y(v):.1f}" for k, v in enumerate(line))}"/>'
            f'<text x="{48 + 90 * n}" y="{height - 4}" font-size="11" fill="{colour}">{name.replace("_", " ")}</text>'
            for n, ((name, line), colour) in enumerate(zip(lines, ("#1a5fb4", "#b35900"))))
        ends = f'<text x="2" y="{y(high) + 4}" font-size="11" fill="gray">{high:.3g}</text>' \
               f'<text x="2" y="{y(low) + 4}" font-size="11" fill="gray">{low:.3g}</text>'
        return f'<svg width="{width}" height="{height}" role="img" aria-label="losses over epochs">{drawn}{ends}</svg>'
