"""Prints the table of docs/trajectories.md.

    python tests/trajectories/report.py"""

import json

import compare
import lowered
from trajectory_cases import CASES


def optimizers(case):
    out = []
    for s in case.sections:
        name, args = s.optimizer
        more = [k for k in ("nesterov", "amsgrad", "centered") if args.get(k)]
        more += [k.replace("_", " ") for k in ("momentum", "dampening", "weight_decay", "lr_decay") if args.get(k)]
        more += [s.schedule["kind"]] if s.schedule else []
        more += ["clip"] * bool(s.clip_norm or s.clip_value) + [f"accumulate {s.accumulate}"] * (s.accumulate > 1)
        out.append(f"{name} ({', '.join(more)})" if more else name)
    return "; ".join(dict.fromkeys(out))


def main():
    index = json.loads((compare.DATA / "index.json").read_text())
    worst, rows = 0.0, 0
    print("| architecture | optimizer | exporter | losses | gradients | parameters | lowered, in ONNX Runtime |")
    print("|---|---|---|---|---|---|---|")
    for name, case in CASES.items():
        for how, said in index[name].items():
            if said != "ok":
                print(f"| {name} | | {how} | {said.split(': ', 1)[1]} | | | |")
                continue
            r = compare.run(name, how)
            try:
                low = f"{max(v for v, _ in lowered.run(name, how).values()):.2f}"
            except Exception as e:  # noqa: BLE001
                low = str(e).splitlines()[0][:120]
            rows, worst = rows + 1, max([worst] + [v for v, _ in r.values()])
            print(f"| {name} | {optimizers(case)} | {how} | " + " | ".join(f"{v:.2f}" for v, _ in r.values())
                  + f" | {low} |", flush=True)
    print(f"\n{len(CASES)} architectures, {rows} files; worst ratio {worst:.2f} (limit {compare.LIMIT:g})")


if __name__ == "__main__":
    main()
