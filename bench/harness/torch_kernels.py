"""PyTorch's side of bench/conv.py and bench/linear.py, in an interpreter that has torch:  torch_kernels.py THREADS

Every line is a case; the answer has the least seconds of its forward kernel, of the gradient of the input and of the
weight gradient.
"""

import json
import sys
import time

import torch


def least(run, seconds):
    run()
    best, end = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return best


def convolution(v, seconds):
    """In both memory formats; the faster counts."""
    more = {2: [torch.channels_last], 3: [torch.channels_last_3d]}.get(len(v["size"]), [])
    options = (v["s"], v["p"], v["d"], v["transposed"], v["extra"], v["g"])
    best = {}
    for layout in [torch.contiguous_format, *more]:
        x = torch.randn(v["n"], v["c"], *v["size"]).to(memory_format=layout)
        w = torch.randn(v["weight"]).to(memory_format=layout)
        g = torch.randn_like(torch.ops.aten.convolution(x, w, None, *options))
        kernels = {"forward": lambda x=x, w=w: torch.ops.aten.convolution(x, w, None, *options)}
        for name, mask in (("input", [True, False, False]), ("weights", [False, True, False])):
            kernels[name] = lambda x=x, w=w, g=g, mask=mask: torch.ops.aten.convolution_backward(
                g, x, w, None, *options, mask)
        for name, run in kernels.items():
            best[name] = min(least(run, seconds), best.get(name, 1e9))
    return best


def linear(rows, inputs, outputs, seconds):
    x, w, b = torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.randn(outputs)
    g = torch.randn(rows, outputs)
    return {"forward": least(lambda: torch.nn.functional.linear(x, w, b), seconds),
            "input": least(lambda: g.mm(w), seconds), "weights": least(lambda: g.t().mm(x), seconds)}


def main():
    torch.set_num_threads(int(sys.argv[1]))
    with torch.no_grad():
        for line in sys.stdin:
            case = json.loads(line)
            seconds = case["seconds"]
            found = convolution(case["conv"], seconds) if "conv" in case else linear(*case["linear"], seconds)
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
