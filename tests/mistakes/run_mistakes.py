"""Plants every mistake, reads the answer, types the fix.

    python tests/mistakes/run_mistakes.py [-j 2] [-k WORDS] [-v]

docs/errors.md has the table; `make figures-mistakes` runs this. `make test` runs a part of it (test_mistakes.py).
"""

import argparse
import concurrent.futures
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import cases_attributes  # noqa: E402
import cases_calls  # noqa: E402
import cases_command  # noqa: E402
import cases_data  # noqa: E402
import cases_edited  # noqa: E402
import cases_hints  # noqa: E402
import cases_hints_data  # noqa: E402
import cases_images  # noqa: E402
import cases_meeting  # noqa: E402
import cases_model  # noqa: E402
import cases_more  # noqa: E402
import cases_plausible  # noqa: E402
import cases_python  # noqa: E402
import cases_rows  # noqa: E402
import cases_run  # noqa: E402
import cases_sane  # noqa: E402
import cases_stranger  # noqa: E402
import cases_table  # noqa: E402
import cases_unlike  # noqa: E402
import cases_values  # noqa: E402
import workshop  # noqa: E402
from mistake import Answer, answer  # noqa: E402

GROUPS = {
    "command line": cases_command.CASES,
    "models": cases_model.CASES,
    "data": cases_data.CASES,
    "runs and configuration": cases_run.CASES,
    "tables and new models": cases_table.CASES,
    "images": cases_images.CASES,
    "Python": cases_python.CASES,
    "a stranger": cases_stranger.CASES,
    "values, files and settings": cases_values.CASES,
    "rows, columns and classes": cases_rows.CASES,
    "calls": cases_calls.CASES,
    "formats and numbers": cases_more.CASES,
    "settings that meet": cases_meeting.CASES,
    "unlike the training": cases_unlike.CASES,
    "nothing is learnt": cases_sane.CASES,
    "wrong and plausible": cases_plausible.CASES,
    "edited training files": cases_edited.CASES,
    "attributes": cases_attributes.CASES,
    "seldom seen": cases_hints.CASES + cases_hints_data.CASES,
}


def one(m, made):
    with tempfile.TemporaryDirectory() as d:
        folder = workshop.copy_of(made, Path(d) / "work")
        try:
            return answer(m, folder)
        except Exception as e:  # the suite's own mistake must show
            return Answer(m, [f"the suite failed: {type(e).__name__}: {e}"])


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("-j", type=int, default=2)
    p.add_argument("-k", default="", help="only mistakes whose names have these words")
    p.add_argument("-g", default="", help="only this group")
    p.add_argument("-v", action="store_true", help="print every answer")
    a = p.parse_args()
    total = {"planted": 0, "full": 0, "silent": 0, "fix": 0, "failed": 0}
    bad = []
    print(f"{'':24} {'planted':>8} {'full':>8} {'silent':>8} {'fixes typed':>12} {'fixes that fail':>16}")
    with tempfile.TemporaryDirectory() as top, concurrent.futures.ThreadPoolExecutor(a.j) as pool:
        made = Path(top) / "made"
        made.mkdir()
        workshop.make(made)
        for group, cases in GROUPS.items():
            cases = [m for m in cases if a.k in m.name and a.g in group]
            answers = list(pool.map(lambda m: one(m, made), cases))
            row = {
                "planted": len(cases),
                "full": sum(not r.problems for r in answers),
                "silent": sum(r.silent for r in answers),
                "fix": sum(m.fix is not None or m.then is not None for m in cases),
                "failed": sum(r.fix_failed for r in answers),
            }
            for k, v in row.items():
                total[k] += v
            show(group, row)
            bad += [(group, r) for r in answers if r.problems]
            if a.v:
                for r in answers:
                    print(f"--- {r.mistake.name}: {r.mistake.typed}\n{r.text}")
        shutil.rmtree(made, ignore_errors=True)
    show("together", total)
    if total["planted"]:
        print(f"answered fully: {100 * total['full'] / total['planted']:.1f} %")
    for group, r in bad:
        print(f"\n{group}: {r.mistake.name}: {r.mistake.typed}")
        for problem in r.problems:
            print(f"  - {problem}")
        print("  | " + "\n  | ".join(r.text.strip().splitlines()[-6:]))
    return 1 if total["silent"] or total["failed"] or total["full"] < 0.95 * total["planted"] else 0


def show(name, row):
    print(
        f"{name:24} {row['planted']:8} {row['full']:8} {row['silent']:8} {row['fix']:12} {row['failed']:16}", flush=True
    )


if __name__ == "__main__":
    sys.exit(main())
