"""Several processes where the system gives one of them no thread, or no TCP connection to the others."""

import json
import os
import re
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from row_models import MPIRUN, command, environment, needs_mpi, ot_program, write_files  # noqa: E402

# Threads that onnxtrain starts, through libstdc++; those of MPI are started by C code.
NO_THREADS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*run)(void*), void* x) {
  static int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "pthread_create");
  Dl_info from;
  const int known = dladdr(__builtin_return_address(0), &from) && from.dli_fname;
  if (known && (strstr(from.dli_fname, "libstdc++") || strstr(from.dli_fname, "onnxtrain"))) return EAGAIN;
  return real(t, a, run, x);
}
"""
NO_TCP = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
int connect(int fd, const struct sockaddr* to, socklen_t n) {
  static int (*real)(int, const struct sockaddr*, socklen_t);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "connect");
  if (to->sa_family != AF_INET) return real(fd, to, n);
  errno = ECONNREFUSED;
  return -1;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = write_files(tmp_path_factory.mktemp("refused"))
    for name, text in (("no_threads", NO_THREADS), ("no_tcp", NO_TCP)):
        (path / f"{name}.c").write_text(text)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(path / f"{name}.so"), str(path / f"{name}.c"), "-ldl"],
                       check=True)
    return path


@needs_mpi
@pytest.mark.parametrize("rank", [0, 1])
def test_no_thread(folder, rank):
    """One error with rank, reason and fix, although that process cannot watch the others."""
    words = command(folder / "mlp.onnx", "--data", folder / "data.npz", "--threads", 1, "--epochs", 1, "--out",
                    folder / "no")
    both = [words, words]
    both[rank] = ["env", f"LD_PRELOAD={folder / 'no_threads.so'}", *words]
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "1", *both[0], ":", "-n", "1", *both[1]],
                          env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and done.stderr.count("error[") == 1, done.stderr
    place = r"rank 1 on host \S+: " if rank else ""
    said = r"error\[OT1401\]: no thread could be started.*\n  help: raise it"
    assert re.search(place + said, done.stderr), done.stderr
    assert not (folder / "no").exists()


def test_no_connection(folder):
    """The training goes on, and it is said that a process that stops would not be noticed."""
    words = [ot_program(), "launch", "-n", "2", "--by", "processes", "--", "train", folder / "mlp.onnx", "--data",
             folder / "data.npz", "--epochs", "1", "--out", folder / "unwatched", "--fault-timeout", "0.5"]
    done = subprocess.run(list(map(str, words)), env=dict(os.environ, LD_PRELOAD=str(folder / "no_tcp.so")),
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert re.search(r"warning\[OT5032\]: rank 1 on host \S+ made no TCP connection to rank 0 on host \S+, port \d+",
                     done.stderr), done.stderr
    assert (folder / "unwatched/model.onnx").exists()


@needs_mpi
def test_threads_are_shared_out(folder):
    """Processes that may use the same cores share them, in Python as on the command line; `threads=` is obeyed."""
    (folder / "threads.py").write_text(f"""
import numpy as np, onnxtrain as ot
for threads in (0, 3):
    model = ot.load({str(folder / 'mlp.onnx')!r}).compile(loss="cross_entropy")
    data = np.load({str(folder / 'data.npz')!r})
    out = {str(folder)!r} + f"/threads{{threads}}"
    model.fit(data["x"], data["label"], epochs=1, threads=threads, verbose=0, out=out)
""")
    cores = len(os.sched_getaffinity(0))
    words = command(folder / "mlp.onnx", "--data", folder / "data.npz", "--epochs", 1, "--out", folder / "threads-cli")
    for start in ([sys.executable, str(folder / "threads.py")], words):
        subprocess.run([MPIRUN, "--oversubscribe", "--bind-to", "none", "-n", "2", *start], env=environment(),
                       check=True, capture_output=True, timeout=240)
    for run, threads in (("threads0", max(1, cores // 2)), ("threads3", 3), ("threads-cli", max(1, cores // 2))):
        assert json.loads((folder / run / "env.json").read_text())["threads"] == threads, run


@pytest.mark.parametrize("by", ["mpirun", "srun"])
def test_no_launcher(folder, by):
    words = [ot_program(), "launch", "-n", "2", "--by", by, "--", "train", folder / "mlp.onnx", "--data",
             folder / "data.npz"]
    done = subprocess.run(list(map(str, words)), env=dict(os.environ, PATH=str(folder)), capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 1, done.stderr
    assert f"error[OT5040]: --by {by}: there is no program {by} here" in done.stderr
