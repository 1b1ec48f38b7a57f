"""Results as Markdown. Ratios above 1 mean that onnxtrain is faster; those of before and after are times."""

import math

from peers import OURS, PEERS, REFERENCE


def number(ms):
    return f"{ms:.4f}" if ms < 0.1 else f"{ms:.3g}" if ms < 1000 else f"{ms:.0f}"


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def heading(run):
    m = run["machine"]
    isa = ", ".join(m["isa"]) + (f" (limited to {m['isa_limit']})" if m["isa_limit"] else "")
    kind = "virtual machine" if m["virtual"] else "no hypervisor"
    h = run["how"]
    return (f"Commit {m['commit']}, {m['date']}. {m['cpu']}, {m['cores']} cores, {kind}; {isa}. "
            f"{run['threads']} thread{'s' * (run['threads'] > 1)}, {h['rounds']} rounds of {h['seconds']} s in turn, "
            f"medians{' of CPU time' if h['clock'] == 'cpu' else ''}.\n")


def versions(run):
    found = {}
    for results in run["workloads"].values():
        for name, r in results.items():
            if "version" in r:
                found[PEERS[name].title] = r["version"]
    return "Versions: " + ", ".join(f"{title} {version}" for title, version in found.items()) + ".\n"


def counts(r):
    """Whether a peer trained what the others train and has a time."""
    return "ms" in r and "failed" not in r and not r.get("wrong")


def ratios(results):
    """-> (to PyTorch eager, to the fastest other engine); None where there is none"""
    if not counts(results.get(OURS, {})):
        return None, None
    ours = results[OURS]["ms"]
    others = {n: r["ms"] for n, r in results.items() if not n.startswith(OURS) and counts(r)}
    eager = others.get(REFERENCE)
    return eager and eager / ours, min(others.values()) / ours if others else None


def speed(run):
    from workloads import WORKLOADS

    names = [n for n in PEERS if any(n in results for results in run["workloads"].values())]
    header = ["workload", *(f"{PEERS[n].title}, ms" for n in names), "spread", "GFLOP/s", "to eager", "to the fastest"]
    rows, eager, fastest = [], [], []
    for wid, results in run["workloads"].items():
        w = WORKLOADS[wid]
        cells = [number(results[n]["ms"]) if counts(results.get(n, {})) else "-" for n in names]
        to_eager, to_fastest = ratios(results)
        eager += [to_eager] if to_eager else []
        fastest += [to_fastest] if to_fastest else []
        ours = results.get(OURS, {})
        spread = f"{ours['spread']:.2f}" if "spread" in ours else "-"
        flops = f"{w.cost()['step_flops'] / ours['ms'] / 1e6:.3g}" if "ms" in ours else "-"
        rows.append([f"{w.id} {w.name}, {w.title}", *cells, spread, flops, times(to_eager), times(to_fastest)])
    rows.append(["geometric mean", *[""] * (len(names) + 2), times(geometric_mean(eager)),
                 times(geometric_mean(fastest))])
    return table(header, rows)


def times(ratio):
    return f"{ratio:.2f}x" if ratio else "-"


def memory(run):
    names = [n for n in PEERS if any("peak_bytes" in r.get(n, {}) for r in run["workloads"].values())]
    ids = list(run["workloads"])

    def row(name, key, form):
        found = [run["workloads"][w].get(name, {}) for w in ids]
        return [form(r[key]) if key in r else "-" for r in found]

    rows = [[f"{PEERS[n].title}, peak MB", *row(n, "peak_bytes", lambda b: f"{b / 2**20:.0f}")] for n in names]
    rows += [[f"{PEERS[n].title}, s to the end of the first step",
              *row(n, "cold_seconds", lambda s: f"{s:.2f}")] for n in names]
    return table(["", *ids], rows)


def losses(run):
    lines = []
    for wid, results in run["workloads"].items():
        checked = {n: r for n, r in results.items() if "loss_difference" in r}
        found = [f"{n} {r['loss_difference']:.1e}" for n, r in checked.items() if n != r["compared_with"]]
        if found:
            reference = next(iter(checked.values()))["compared_with"]
            lines.append(f"- {wid}, beside {reference}: " + ", ".join(found))
    return "\n".join(lines) + "\n"


def notes(run):
    lines = [f"- {name}: left out, {why}" for name, why in run["left_out"].items()]
    for wid, results in run["workloads"].items():
        for name, r in results.items():
            if "failed" in r:
                lines.append(f"- {wid}, {name}: failed, {r['failed']}")
            elif r.get("wrong"):
                lines.append(f"- {wid}, {name}: left out, {r['wrong']}")
    others = [max(r["others"]) for results in run["workloads"].values() for r in results.values() if r.get("others")]
    if others:
        lines.append(f"- Other processes used at most {max(others):.2f} CPUs during a round that counts.")
    return "\n".join(lines) + "\n"


def markdown(run):
    if "commits" in run:
        return before_after(run)
    parts = [heading(run), versions(run)]
    if any("ms" in r for results in run["workloads"].values() for r in results.values()):
        parts += [speed(run), memory(run)]
    if any("loss_difference" in r for results in run["workloads"].values() for r in results.values()):
        parts += ["Largest relative difference of the first losses (real learning rate, no dropout):\n", losses(run)]
    return "\n".join([*parts, notes(run)])


def before_after(run):
    from workloads import WORKLOADS

    header = ["workload", "before, ms", "after, ms", "time after / before", "95 % interval", "of the least times",
              "pairs", "same losses", "others' CPUs"]
    rows = []
    for wid, r in run["workloads"].items():
        name = f"{wid} {WORKLOADS[wid].name}"
        if "failed" in r:
            rows.append([name, r["failed"], *[""] * 7])
            continue
        same = "same bits" if r["same_losses"] else f"differ by {r['loss_difference']:.1e}"
        rows.append([name, number(r["before_ms"]), number(r["after_ms"]), f"{r['ratio']:.3f}",
                     f"{r['low']:.3f} to {r['high']:.3f}", f"{r['ratio_of_least']:.3f}", r["pairs"], same,
                     f"{r['others']:.2f}"])
    good = [r for r in run["workloads"].values() if "ratio" in r]
    if good:
        rows.append(["geometric mean", "", "", f"{geometric_mean(r['ratio'] for r in good):.3f}", "",
                     f"{geometric_mean(r['ratio_of_least'] for r in good):.3f}", "", "", ""])
    c = run["commits"]
    return "\n".join([heading(run), f"Before: {c['before']}; after: {c['after']}. Above 1: slower than before.\n",
                      table(header, rows), verdict(run["workloads"])])


def verdict(workloads, limit=0.03):
    """In words: which workloads changed by more than the limit, and whether noise alone could be the reason."""
    lines = []
    for wid, r in workloads.items():
        if "ratio" not in r:
            lines.append(f"- {wid}: not measured")
        elif abs(r["ratio"] - 1) > limit:
            sure = not r["low"] <= 1 <= r["high"]
            lines.append(f"- {wid}: {100 * (r['ratio'] - 1):+.1f} %" + ("" if sure else ", but 1 is in its interval"))
    if not lines:
        return f"All within {100 * limit:.0f} %.\n"
    return f"Not within {100 * limit:.0f} %:\n" + "\n".join(lines) + "\n"
