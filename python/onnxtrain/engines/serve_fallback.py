"""A fallback in a process of its own, driven over a socket by the command line:

    python -m onnxtrain.engines.serve_fallback FD NAME [LIB ...]"""

import sys

from ..foreign import open_runtime
from ..hints import for_shell
from .serve import answer_all


def serve(fd, name, custom_ops):
    def compute(runtime, message, tensors):
        arrays = [v for _, v in tensors]
        made = runtime.compute(arrays[0].tobytes(), message["about"], arrays[1:])
        return {}, [(str(k), v) for k, v in enumerate(made)]

    return answer_all(fd, lambda: (open_runtime(name, custom_ops), {"fallback": name}), compute, "OT1780")


if __name__ == "__main__":
    for_shell()
    sys.exit(serve(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
