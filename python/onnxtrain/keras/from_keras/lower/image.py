"""Images: resizing, and what has no form."""

from ..values import Traced, is_open
from .elementwise import spec
from .nn import channels_first, format_of
from .table import operation

_MODES = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}


@operation("Resize")
def resize(t, op, images):
    out, x = spec(op, images), t.value(images)
    if op.interpolation not in _MODES:
        return t.refuse(f"resizing with interpolation '{op.interpolation}'", fix="nearest, bilinear or bicubic")
    if op.crop_to_aspect_ratio or op.pad_to_aspect_ratio:
        return t.refuse("resizing that keeps the aspect ratio")
    if op.interpolation == "bicubic" and t.semantics == "tensorflow" and not _exact_cubic(x, op):
        return t.refuse("bicubic resizing by this factor: TensorFlow rounds its weights to a table of 1024 places",
                        fix="interpolation='bilinear', or a factor like 2 or 4")
    return resized(t, x, tuple(op.size), op.interpolation, format_of(op.data_format), op.antialias, out)


def _exact_cubic(x, op):
    """Whether all places between two pixels are in TensorFlow's table."""
    axes = (-3, -2) if format_of(op.data_format) == "channels_last" else (-2, -1)
    for axis, new in zip(axes, op.size):
        old = x.shape[axis]
        if is_open(old) or any((2 * k + 1) * old * 512 % new for k in range(new)):
            return bool(op.antialias)
    return True


def resized(t, x, size, interpolation, data_format, antialias, out):
    single = x.rank == 3
    layout = channels_first(4, data_format)
    if single:
        x = t.logical(x)
        x = x.like(t.e.op("Unsqueeze", x.onnx, t.e.ints([0])), (1, *x.shape))
    dtype = x.dtype
    x = t.physical(x if dtype.startswith("float") else t.cast(x, "float32"), layout)
    mode = _MODES[interpolation]
    sizes = t.shape_vector([t.dim(x, 0) if is_open(x.shape[0]) else x.shape[0],
                            t.dim(x, layout[1]) if is_open(x.shape[layout[1]]) else x.shape[layout[1]], *size])
    nearest = {"nearest_mode": "round_prefer_ceil"} if mode == "nearest" else {}  # floor((i + 0.5) * scale)
    cubic = {"cubic_coeff_a": -0.5, "exclude_outside": 1} if mode == "cubic" else {}
    name = t.e.op("Resize", x.onnx, None, None, sizes, mode=mode, antialias=int(bool(antialias)) or None,
                  coordinate_transformation_mode="half_pixel", **nearest, **cubic)
    shape = out.shape if not single else (1, *out.shape)
    made = Traced(name, shape, x.dtype, layout)
    if not dtype.startswith("float") and interpolation == "nearest":
        made = t.cast(made, dtype)
    if single:
        made = t.logical(made)
        made = Traced(t.e.op("Squeeze", made.onnx, t.e.ints([0])), out.shape, made.dtype)
    return made


@operation("PerspectiveTransform", "ElasticTransform", "ScaleAndTranslate")
def unsupported(t, op, *_, **__):
    return t.refuse(f"keras.ops.image operation {type(op).__name__} has no form here",
                    fix="augment the data before it is fed")
