"""A command with its peak memory.

The kernel lets a program inherit the peak of the process that started it, so a small process stands in between.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

CLI = Path(__file__).parents[2] / ".venv" / "bin" / "onnxtrain"
CPU_SECONDS = 20  # tells a hang from a slow machine

BETWEEN = """
import json, resource, subprocess, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
p = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu = used.ru_utime + used.ru_stime
print(json.dumps([p.returncode, p.stdout.decode(errors="replace"), used.ru_maxrss / 1024, cpu]))
"""
spent = {"cpu": 0.0}  # seconds of all threads of the last command


def measured(words, env):
    p = subprocess.run([sys.executable, "-S", "-E", "-c", BETWEEN, str(CPU_SECONDS), *map(str, words)],
                       stdout=subprocess.PIPE, env={**os.environ, **env}, check=True, timeout=600)
    code, text, peak, spent["cpu"] = json.loads(p.stdout)
    return [code, text, peak]


def command(*args, **env):
    """(exit code, text, peak in MiB) of an onnxtrain command."""
    return measured([CLI, *args], env)


def python(code, *args, **env):
    """The same of a Python program."""
    return measured([sys.executable, "-c", code, *args], env)
