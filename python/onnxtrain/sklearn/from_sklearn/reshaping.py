"""Transformers that change the distribution of columns or project them at random: powers, quantiles, features."""

import numpy as np

from .nodes import INT64


def power_transformer(t, x, g, who, table):
    """Yeo-Johnson or Box-Cox of every column, then the scaler."""
    power = g.real(np.where(t.lambdas_ == 0, 1, t.lambdas_))
    if t.method == "box-cox":
        made = g.Where(g.constant(t.lambdas_ == 0), g.Log(x), _power(g, x, power))
    else:
        other = np.where(t.lambdas_ == 2, 1, 2 - t.lambdas_)
        one = g.real(1)
        above, below = g.Add(g.Max(x, g.real(0)), one), g.Sub(one, g.Min(x, g.real(0)))
        positive = g.Where(g.constant(t.lambdas_ == 0), g.Log(above), _power(g, above, power))
        negative = g.Where(g.constant(t.lambdas_ == 2), g.Log(below), _power(g, below, g.real(other)))
        made = g.Where(g.GreaterOrEqual(x, g.real(0)), positive, g.Neg(negative))
        made = g.Where(g.IsNaN(x), x, made)
    if t.standardize:
        made = g.Div(g.Sub(made, g.real(t._scaler.mean_)), g.real(t._scaler.scale_))
    return made


def _power(g, x, power):
    return g.Div(g.Sub(g.Pow(x, power), g.real(1)), power)


def quantile_transformer(t, x, g, who, table):
    """Interpolation between the quantiles, from both sides where several are equal; 0 and 1 beyond them."""
    if t.output_distribution != "uniform":
        who.refuse(f"output_distribution={t.output_distribution!r} has no form in ONNX",
                   "output_distribution='uniform'")
    points, count = t.quantiles_.T, len(t.references_)  # [columns, quantiles]
    column = g.Unsqueeze(x, [2])
    passed = g.sum(g.cast(g.GreaterOrEqual(column, g.real(points[None])), INT64), [2])
    reached = g.sum(g.cast(g.Greater(column, g.real(points[None])), INT64), [2])
    up = _interpolated(g, x, passed, points, t.references_, count)
    down = _interpolated(g, x, reached, points, t.references_, count)
    made = g.Mul(g.Add(up, down), g.real(0.5))
    made = g.Where(g.GreaterOrEqual(x, g.real(points[:, -1])), g.real(1), made)
    made = g.Where(g.LessOrEqual(x, g.real(points[:, 0])), g.real(0), made)
    return g.Where(g.IsNaN(x), x, made)


def _interpolated(g, x, passed, points, references, count):
    """The line between the last quantile that was passed and the next."""
    width = np.diff(points)
    slope = np.divide(np.diff(references)[None], width, out=np.zeros_like(width), where=width > 0)
    at = g.Min(g.Max(g.Sub(passed, 1), 0), count - 2)
    row = g.Add(at, g.constant(np.arange(len(points), dtype=np.int64) * (count - 1)))  # in the tables, flat

    def of(values):
        return g.Gather(g.real(np.ravel(values)), row, axis=0)

    start, rise = of(points[:, :-1]), of(slope)
    begin = of(np.broadcast_to(references[:-1], (len(points), count - 1)))
    return g.Add(g.Mul(g.Sub(x, start), rise), begin)


def rbf_sampler(t, x, g, who, table):
    turned = g.Cos(g.Add(g.MatMul(x, g.real(t.random_weights_)), g.real(t.random_offset_)))
    return g.Mul(turned, g.real((2.0 / t.n_components) ** 0.5))


def random_projection(t, x, g, who, table):
    return g.MatMul(x, g.real(t.components_.T))


def independent_components(t, x, g, who, table):
    if t.whiten:
        x = g.Sub(x, g.real(t.mean_))
    return g.MatMul(x, g.real(t.components_.T))
