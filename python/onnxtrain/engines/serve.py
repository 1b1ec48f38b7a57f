"""An engine in a process of its own, driven over a socket: python -m onnxtrain.engines.serve SPEC FD [THREADS]

A message is 8 bytes of length, that many bytes of JSON, and the tensors that it names under "tensors" (name, dtype as
ONNX numbers it, shape) one after the other. The command line drives engines so, and `isolated=True` in Python."""

import json
import os
import signal
import socket
import struct
import sys
import tempfile
import warnings

import numpy as np

from .. import _native
from ..errors import DataError, Error
from ..hints import for_shell
from ..values import dtype_number, from_native, numpy_dtype, to_native
from .evaluation import EngineFailed, kept_here


class Channel:
    def __init__(self, sock):
        self.sock = sock

    def _exactly(self, n):
        parts = bytearray(n)
        view = memoryview(parts)
        while view:
            got = self.sock.recv_into(view)
            if got == 0:
                raise EOFError
            view = view[got:]
        return parts

    def send(self, message, tensors=()):
        arrays = [(k, np.asarray(v, order="C")) for k, v in tensors]
        message["tensors"] = [[k, dtype_number(v.dtype), list(v.shape)] for k, v in arrays]
        text = json.dumps(message).encode()
        self.sock.sendall(struct.pack("<Q", len(text)) + text)
        for _, v in arrays:
            self.sock.sendall(v.tobytes() if v.ndim == 0 else memoryview(v).cast("B"))

    def receive(self):
        size, = struct.unpack("<Q", self._exactly(8))
        message = json.loads(self._exactly(size))
        tensors = []
        for name, dtype, shape in message.pop("tensors", []):
            kind = numpy_dtype(dtype)
            data = self._exactly(int(np.prod(shape, dtype=np.int64)) * kind.itemsize)
            tensors.append((name, np.frombuffer(data, kind).reshape(shape)))
        return message, tensors


def answer(driver, message, tensors):
    """(reply, tensors) to one message."""
    if message["do"] == "begin":
        try:
            model = _native.load(message["model"])
        except Error as e:  # a file that this library read: with operators of --fallback
            raise kept_here(e) from None
        driver.begin(model, message["step"])
        return {"device": driver.device}, ()
    if message["do"] == "step":
        loss = driver.step({k: to_native(v, k) for k, v in tensors})
        return {}, [("loss", np.float64(loss))]
    if message["do"] == "state":
        return {}, [(k, from_native(v)) for k, v in driver.state()]
    if message["do"] == "undo":
        return {"undone": driver.undo()}, ()
    if message["do"] == "evaluate":
        refused, values = driver.evaluate({k: to_native(v, k) for k, v in tensors})
        return ({"refused": refused} if refused else {}), [(k, from_native(v)) for k, v in values]
    raise ValueError(f"unknown message {message['do']}")


def serve(spec, fd, threads=0):
    from .driver import Driver

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loop decides when to stop

    notes = []

    def begin():
        driver = Driver(spec, threads, warn=lambda code, text: notes.append([code, text]))
        return driver, {"engine": driver.engine.name, "device": driver.device}

    def answer_and_note(driver, message, tensors):
        reply, values = answer(driver, message, tensors)
        said, notes[:] = list(notes), []
        return (reply | {"notes": said} if said else reply), values

    return answer_all(fd, begin, answer_and_note)


def answer_all(fd, begin, answer, code=None):
    """Answers requests until the other side ends. begin() gives (what answers, what is said of it); answer(it, message,
    tensors) gives (reply, tensors). `code`: of every error of an answer."""
    channel = Channel(socket.socket(fileno=fd))
    try:
        it, about = begin()
        channel.send({"ready": True, **about})
    except Exception as e:  # noqa: BLE001
        channel.send(failure(e))
        return 1
    while True:
        try:
            message, tensors = channel.receive()
        except EOFError:
            return 0
        try:
            reply, values = answer(it, message, tensors)
        except Exception as e:  # noqa: BLE001
            reply, values = failure(e) | ({"code": code} if code else {}), ()
        channel.send(reply, values)


def failure(e):
    if isinstance(e, Error):
        return {"error": e.message, "code": e.code, "hint": e.hint}
    return {"error": f"{type(e).__name__}: {e}"[:2000], "code": "OT1275", "hint": ""}


class Isolated:
    """The same interface as Driver, over a process: a crash there does not take this one along."""

    def __init__(self, spec, threads=0):
        import subprocess

        ours, theirs = socket.socketpair()
        os.set_inheritable(theirs.fileno(), True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, spec, str(theirs.fileno()), str(threads)], pass_fds=[theirs.fileno()])
        theirs.close()
        self.channel, self.outputs = Channel(ours), {}
        try:
            self._reply()
        except EngineFailed as e:
            raise Error(f"the engine '{spec}' does not start: {e}", "OT1275", "train without it:  --engine native"
                        ) from None

    def _reply(self):
        try:
            message, tensors = self.channel.receive()
        except (EOFError, OSError):
            code = self.process.wait()
            ended = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise EngineFailed(f"its process ended ({ended})") from None
        if "error" in message:
            kind = DataError if message["code"].startswith("OT2") else Error
            raise kind(message["error"], message["code"], message.get("hint", ""))
        for code, text in message.get("notes", []):
            warnings.warn(f"[{code}] {text}", stacklevel=4)
        return message, tensors

    def _ask(self, message, tensors=()):
        try:
            self.channel.send(message, tensors)
        except OSError:
            pass  # what happened is in the reply, or in its absence
        return self._reply()

    def begin(self, native, step):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "training.onnx")
            native.save(path)
            self._ask({"do": "begin", "model": path, "step": int(step)})

    def step(self, feeds):
        _, tensors = self._ask({"do": "step"}, [(k, from_native(v)) for k, v in feeds.items()])
        return float(tensors[0][1])

    def state(self):
        return [(k, to_native(v, k)) for k, v in self._ask({"do": "state"})[1]]

    def undo(self):
        return bool(self._ask({"do": "undo"})[0]["undone"])

    def evaluate(self, feeds):
        message, tensors = self._ask({"do": "evaluate"}, [(k, from_native(v)) for k, v in feeds.items()])
        return message.get("refused"), [(k, to_native(v, k)) for k, v in tensors]


if __name__ == "__main__":
    for_shell()
    sys.exit(serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0))
