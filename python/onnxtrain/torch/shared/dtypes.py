"""Element types and tensors between ONNX, numpy and torch."""

import torch

FROM_ONNX = {  # ONNX's number -> torch's type
    1: torch.float32, 2: torch.uint8, 3: torch.int8, 4: torch.uint16, 5: torch.int16, 6: torch.int32, 7: torch.int64,
    9: torch.bool, 10: torch.float16, 11: torch.float64, 12: torch.uint32, 13: torch.uint64, 14: torch.complex64,
    15: torch.complex128, 16: torch.bfloat16, 17: torch.float8_e4m3fn, 18: torch.float8_e4m3fnuz,
    19: torch.float8_e5m2, 20: torch.float8_e5m2fnuz,
}
_WRITTEN = (torch.float32, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool, torch.float16,
            torch.float64, torch.bfloat16, torch.complex64, torch.complex128)
TO_ONNX = {t: n for n, t in FROM_ONNX.items() if t in _WRITTEN}  # those that from_torch writes


def to_tensor(value):
    """A native value -> a torch tensor with memory of its own; None for element types that torch lacks (texts, 4
    bits)."""
    dtype = FROM_ONNX.get(value.dtype)
    if dtype is None:
        return None
    t = torch.empty(tuple(value.shape), dtype=dtype)
    if t.numel():
        value.copy_to(as_bytes(t).numpy())
    return t


def to_numpy(t):
    t = t.detach().cpu()
    if t.dtype == torch.bfloat16:
        import ml_dtypes

        return t.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return t.resolve_conj().resolve_neg().contiguous().numpy()


def as_bytes(tensor):
    """The bytes of a tensor in their order, as a tensor; the same memory where that is contiguous."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    if flat.stride(0) != 1:  # one element may have any stride
        flat = flat.clone().as_strided((flat.numel(),), (1,))
    return flat.view(torch.uint8)
