"""Random faults (make figures-faults):  python tests/fault_campaign.py [--count 100] [--seed 0]

Each time two ranks train, a random one is killed (SIGKILL) or stopped (SIGSTOP) at a random moment, the run is resumed
on a random number of processes, and the weights are compared bit by bit with those of a run that nobody disturbed.
Three kinds of runs, in turn: one that does little but steps, one that saves in every step, one that validates mostly;
half of them with a sharded optimizer. In parts: --count 25 with --seed 0, 1, 2 and 3.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))
import row_models as t  # noqa: E402

TIMEOUT = 3  # seconds without a sign of life
# kind -> (steps of the whole run, steps between saves, part of the rows for validation)
KINDS = {"training": (2000, 100, 0), "saving": (400, 1, 0), "validating": (600, 20, 0.8)}


class Campaign:
    def __init__(self, folder, seed):
        self.folder, self.generator = folder, random.Random(seed)
        self.longest = dict.fromkeys(KINDS, 1.0)  # seconds before the fault comes: shorter when runs are over before
        rng = np.random.default_rng(3)
        t.ot.parse(t.model_text("mlp", rng)).save(folder / "mlp.onnx")
        np.savez(folder / "data.npz", x=rng.normal(size=(203, 6)).astype("f4"), label=rng.integers(0, 4, 203))
        for kind in KINDS:
            subprocess.run(self.words(kind, f"whole-{kind}"), env=t.environment(), check=True, capture_output=True,
                           timeout=900)

    def words(self, kind, out, *flags):
        steps, _, valid = KINDS[kind]
        return t.command(self.folder / "mlp.onnx", "--data", self.folder / "data.npz", "--batch", 8, "--epochs", 100000,
                         "--threads", 1, "--micro-blocks", 2, "--valid", valid, "--steps", steps, "--out",
                         self.folder / out, *flags)

    def fault(self, kind):
        """-> (what was done, problems), or None when the run was over before the fault came."""
        out = self.folder / "run"
        shutil.rmtree(out, ignore_errors=True)
        sharded = ["--shard-optimizer"] if self.generator.random() < 0.5 else []
        words = self.words(kind, "run", "--save-every", KINDS[kind][1], "--fault-timeout", TIMEOUT, *sharded)
        run = subprocess.Popen([t.MPIRUN, "--oversubscribe", "-n", "2", *words], env=t.environment(), text=True,
                               stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        last = out / "checkpoints" / "last.train.onnx"
        while not last.exists() and run.poll() is None:
            time.sleep(0.01)
        time.sleep(self.generator.random() * self.longest[kind])
        how, rank = self.generator.choice((signal.SIGKILL, signal.SIGSTOP)), self.generator.randrange(2)
        ranks = self.ranks(run)
        if len(ranks) < 2 or run.poll() is not None:
            run.communicate(timeout=120)
            return None
        os.kill(ranks[rank], how)
        begin = time.monotonic()
        problems = []
        try:
            error = run.communicate(timeout=120)[1]
        except subprocess.TimeoutExpired:
            run.kill()
            return f"{how.name} to rank {rank}", ["it did not end"]
        spent = time.monotonic() - begin
        if run.returncode == 0 and t.same(self.folder / f"whole-{kind}", out):
            return None  # its last step was done
        if spent > TIMEOUT + 10:
            problems.append(f"it ended after {spent:.1f} s")
        if run.returncode == 0 or error.count("error[OT") > 1:
            problems.append(f"it did not end cleanly: exit {run.returncode}, {error.count('error[OT')} errors")
        told = f"{how.name} to rank {rank}{', sharded' if sharded else ''}, ended after {spent:.1f} s, "
        return told + self.resumed(kind, out, problems), problems

    @staticmethod
    def ranks(run):
        listed = subprocess.run(["ps", "-eo", "pid,ppid,comm"], capture_output=True, text=True).stdout.splitlines()[1:]
        return sorted(int(pid) for pid, parent, name in (line.split(None, 2) for line in listed)
                      if parent == str(run.pid) and name == "onnxtrain")

    def resumed(self, kind, out, problems):
        """Resumes to the end; appends what is wrong."""
        ranks = self.generator.choice((1, 1, 1, 2))
        step = t.ot.load(out / "checkpoints" / "last.train.onnx").info["metadata"]["onnxtrain.step"]
        words = t.command("--resume", out, "--threads", 1, "--steps", KINDS[kind][0], "--save-every", 0)
        if ranks > 1:
            words = [t.MPIRUN, "--oversubscribe", "-n", str(ranks), *words]
        done = subprocess.run(words, env=t.environment(), capture_output=True, text=True, timeout=900)
        if done.returncode:
            problems.append(f"it cannot be resumed: {done.stderr[-500:]}")
        elif not t.same(self.folder / f"whole-{kind}", out):
            problems.append("the resumed run has other bits")
        return f"resumed at step {step} on {ranks}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()
    made, bad = {kind: 0 for kind in KINDS}, []
    with tempfile.TemporaryDirectory() as name:
        campaign = Campaign(pathlib.Path(name), a.seed)
        while sum(made.values()) < a.count:
            kind = min(made, key=made.get)
            found = campaign.fault(kind)
            campaign.longest[kind] *= 0.7 if found is None else 1.05
            if found is None:
                continue
            made[kind] += 1
            bad += found[1]
            print(f"{sum(made.values())}: {kind}: {found[0]}{''.join('; ' + p for p in found[1])}", flush=True)
    told = ", ".join(f"{count} while {kind}" for kind, count in made.items())
    print(f"{sum(made.values())} faults ({told}): {len(bad)} problems")
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
