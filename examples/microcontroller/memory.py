"""Lays the temporaries of a generated step over each other.

emx-onnx-cgen gives every intermediate tensor an array of its own. A tensor is needed from the call that writes it to
the last one that reads it; two that are never needed at the same time can share memory. `shared` replaces the arrays by
places in one static block, largest tensors first, and keeps everything else of the C as it is."""

import re

SIZES = {"float": 4, "int64_t": 8, "int32_t": 4, "bool": 1, "uint8_t": 1, "int8_t": 1, "double": 8}
_ARRAY = re.compile(r"^    (\w+) (tmp\w+)((?:\[\d+\])+);$")
_ALIGN = 8


def shared(source, function="step"):
    """(C with one block for all temporaries, bytes of the block, bytes of all temporaries together)"""
    begin = re.search(rf"^void {function}\(.*\) \{{$", source, re.M).end()
    end = source.index("\n}", begin)
    lines = source[begin:end].split("\n")
    arrays = {m[2]: (m[1], m[3]) for m in map(_ARRAY.match, lines) if m}
    calls = [line for line in lines if not _ARRAY.match(line)]
    lives = {name: _life(name, calls) for name in arrays}
    sizes = {name: _bytes(*arrays[name]) for name in arrays}
    at = place(lives, sizes)
    block = max((at[n] + sizes[n] for n in arrays), default=0)
    pointers = [f"    {kind} (*const {name}){''.join(dims.partition(']')[2:])} = (void*)(block + {at[name]});"
                for name, (kind, dims) in arrays.items()]
    head = f"\n    static _Alignas({_ALIGN}) unsigned char block[{max(block, 1)}];\n"
    return source[:begin] + head + "\n".join(pointers + calls) + source[end:], block, sum(sizes.values())


def _life(name, calls):
    used = [k for k, line in enumerate(calls) if re.search(rf"\b{name}\b", line)]
    return (used[0], used[-1]) if used else (0, 0)


def _bytes(kind, dims):
    n = SIZES[kind]
    for d in re.findall(r"\d+", dims):
        n *= int(d)
    return -(-n // _ALIGN) * _ALIGN


def place(lives, sizes):
    """{name: offset}: the first gap between those that live at the same time."""
    at = {}
    for name in sorted(sizes, key=lambda n: -sizes[n]):
        first, last = lives[name]
        taken = sorted((at[o], at[o] + sizes[o]) for o in at if lives[o][0] <= last and first <= lives[o][1])
        here = 0
        for low, high in taken:
            if here + sizes[name] <= low:
                break
            here = max(here, high)
        at[name] = here
    return at
