"""`onnxtrain conformance export|run`. Also `python -m onnxtrain.conformance`."""

import argparse
import dataclasses
import json
import os
import sys
import warnings

from ..errors import Error, UsageError
from ..hints import for_shell


def parser():
    p = argparse.ArgumentParser(prog="onnxtrain conformance", description=__doc__)
    p.add_argument("action", choices=("export", "run"))
    p.add_argument("folder", nargs="?", metavar="DIR")
    p.add_argument("--engine", help="NAME[:DEVICE]")
    p.add_argument("--backend", help="a module of the ONNX backend interface")
    p.add_argument("--only", help="a glob over the names of cases")
    p.add_argument("--html", help="write a scoreboard page")
    p.add_argument("--json", action="store_true", help="every result on stdout")
    p.add_argument("--all", action="store_true", help="what is not applicable too")
    return p


def run(a):
    from . import page
    from . import run as run_suite

    if a.engine and a.backend:
        raise UsageError("--engine and --backend exclude each other", "OT1800", "leave one of them out")
    score = run_suite(a.folder, a.engine, a.backend, a.only)
    if a.html:
        with open(a.html, "w", encoding="utf-8") as f:
            f.write(page([score]))
    if a.json:
        print(json.dumps(dataclasses.asdict(score), indent=1))
    else:
        shown = ("wrong", "refused") + (("not applicable",) if a.all else ())
        for r in score.results:
            if r.verdict in shown:
                print(f"{r.verdict:<15} {r.name:<32} {r.why}")
        print(score.line)
    return 0 if score.count("wrong") + score.count("refused") == 0 else 6


def main(argv=None):
    a = parser().parse_args(argv)
    sys.path.insert(0, os.getcwd())  # a backend of one's own may lie here
    warnings.simplefilter("ignore")
    try:
        if a.action == "run":
            return run(a)
        from . import export

        if not a.folder:
            raise UsageError("export needs a folder", "OT1801", "onnxtrain conformance export suite")
        names = export(a.folder, a.only)
        print(f"{len(names)} cases in {a.folder}")
        return 0
    except Error as e:
        print(e, file=sys.stderr)
        return 2 if isinstance(e, UsageError) else 3
    except OSError as e:
        print(UsageError(f"'{e.filename}': {e.strerror or e}", "OT1801"), file=sys.stderr)
        return 2


if __name__ == "__main__":
    for_shell()
    sys.exit(main())
