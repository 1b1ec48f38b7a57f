"""Everything that depends on PyTorch's version, in one place.

`TABLE` says which versions are known: what was tested, and what differs. Code elsewhere in this package uses public
PyTorch only, and these functions.
"""

import contextlib
import io
import logging
import os
import traceback
import warnings

import torch

from ...converters.versions import check_range, version_of  # noqa: F401

TABLE = {  # (major, minor) -> notes
    (2, 9): "export without strict mode by default; functional graphs by run_decompositions({}). 2.9.1: "
            "four tests fail (docs/torch.md): batch sizes for which forward takes another branch are not refused",
    (2, 10): "as 2.9",
    (2, 11): "as 2.9",
    (2, 12): "as 2.9",
    (2, 13): "as 2.9; the version the tests run with",
    (2, 15): "2.15.0: test_from_torch and test_from_torch_ops but one (docs/torch.md); not promised",
}
OLDEST, TESTED = (2, 9), (2, 13)


def check_version(text=None):
    """Refuses versions that lack what we need; newer ones than the tested are tried with a warning."""
    return check_range("PyTorch", "torch", (text or torch.__version__).split("+")[0], OLDEST, TESTED)


def export(module, args, dynamic_shapes):
    """torch.export in the mode that runs Python itself."""
    with warnings.catch_warnings(), _quiet(), _plain_masks(), _user_lines():
        warnings.simplefilter("ignore")
        return torch.export.export(module, args, dynamic_shapes=dynamic_shapes, strict=False)


@contextlib.contextmanager
def _quiet():
    """Refusals are told by our error; torch's own report (it logs and prints the graph so far) would come first."""
    logger = logging.getLogger("torch")
    children = [logging.getLogger(n) for n in list(logging.root.manager.loggerDict) if n.startswith("torch.")]
    before = [(x, x.level) for x in [logger, *children]]
    for x, _ in before:
        x.setLevel(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        for x, level in before:
            x.setLevel(level)


@contextlib.contextmanager
def _plain_masks():
    """nn.Transformer looks at a mask's values to choose a faster kernel; a graph must not depend on that."""
    from torch.nn.modules import transformer

    original = getattr(transformer, "_detect_is_causal_mask", None)
    if original is not None:
        transformer._detect_is_causal_mask = lambda mask, is_causal=None, size=None: bool(is_causal)
    try:
        yield
    finally:
        if original is not None:
            transformer._detect_is_causal_mask = original


@contextlib.contextmanager
def _user_lines():
    """FX keeps lines of functions called `forward` only; helper functions of the user are wanted too."""
    from torch.fx import proxy

    from ..from_torch.obstacles import USER, within_forward

    original = getattr(proxy.TracerBase, "_filter_traceback_frames", None)
    if original is not None:
        proxy.TracerBase._filter_traceback_frames = lambda self, frames: traceback.StackSummary.from_list(
            [f for f in within_forward(list(frames), lambda f: (os.path.abspath(f.filename), f.name))
             if USER.has(f.filename)])
    try:
        yield
    finally:
        if original is not None:
            proxy.TracerBase._filter_traceback_frames = original


def automatic_dimension():
    return torch.export.Dim.AUTO


def fixed_size(symbol):
    """The number that a symbolic size has become, because code asked for it as a number (len(x), int(x.shape[0])); None
    when it is open."""
    return symbol.node.maybe_as_int()


def other_sizes(program):
    """Batches for which some code asked and went another way than the trace did; torch leaves out 0 and 1 by itself."""
    found = set()
    for symbol, span in getattr(program, "range_constraints", {}).items():
        most = str(span.upper)
        if str(symbol).startswith("s"):
            found |= {int(span.lower) - 1} - {-1, 0, 1}
            found |= {int(most) + 1} if most.isdigit() and int(most) < 1024 else set()
    return found


def functional(program, table=None):
    """The program without in-place operators; operators in `table` are decomposed, all others stay."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program.run_decompositions(table or {})


def is_grad_mode_region(target):
    return (
        getattr(target, "__name__", "") == "wrap_with_set_grad_enabled" or str(target) == "wrap_with_set_grad_enabled"
    )


def is_mutating(target):
    schema = getattr(target, "_schema", None)
    return schema is not None and schema.is_mutable


def decomposition(op):
    """A function that computes `op` by simpler operators, or None."""
    from torch._decomp import decomposition_table

    if op in decomposition_table:
        return decomposition_table[op]
    if not torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), torch._C.DispatchKey.CompositeImplicitAutograd):
        return None
    from torch._export.utils import _get_decomp_for_cia

    return _get_decomp_for_cia(op)
