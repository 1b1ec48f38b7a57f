"""A Python process that answers lines of JSON: {..} on its standard input, {..} on its standard output."""

import json
import os
import subprocess

TICK = os.sysconf("SC_CLK_TCK")


class LineProcess:
    def __init__(self, command, env=None, log=None):
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=log, env=env, text=True)

    def read(self):
        """The next answer; None when the process has ended."""
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def ask(self, question):
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        return self.read()

    def must_answer(self, question):
        found = self.ask(question)
        if found is None:
            raise SystemExit("a process of this measurement ended early; its message is above")
        return found

    def cpu_seconds(self):
        """Of the process and the children it has waited for."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / TICK

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
