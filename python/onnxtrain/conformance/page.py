"""The scoreboard as one HTML file without a network."""

import html

from .case import VERSION

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #1c2733; }
table { border-collapse: collapse; margin: 1rem 0 2rem; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #dde3ea; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.pass { color: #14713d; } .wrong { color: #b3261e; font-weight: 600; } .refused { color: #8a5a00; } .not {
color: #68737f; }
small { color: #5a6672; }
"""
_MARKS = {"pass": "pass", "wrong": "wrong", "refused": "refused", "not applicable": "not"}


def page(scores):
    """`scores`: one or several `Score` of the same cases."""
    e = html.escape
    names = [f"{s.target} {s.version}".strip() for s in scores]
    out = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>ONNX Training conformance</title><style>{_STYLE}</style>",
        f"<h1>ONNX Training conformance</h1><p>Suite {VERSION}, {len(scores[0].results)} cases.</p>",
        "<table><tr><th>runs on<th class=n>pass<th class=n>wrong<th class=n>refused<th class=n>not applicable</tr>",
    ]
    for s, name in zip(scores, names):
        cells = "".join(f"<td class=n>{s.count(v)}" for v in _MARKS)
        out.append(f"<tr><td>{e(name)}{cells}</tr>")
    out.append("</table>")
    for category in dict.fromkeys(r.category for r in scores[0].results):
        out.append(f"<h2>{e(category)}</h2><table><tr><th>case<th>{'<th>'.join(map(e, names))}</tr>")
        for rows in zip(*(s.results for s in scores)):
            if rows[0].category != category:
                continue
            rule = f" <small>({e(rows[0].rule)})</small>" if rows[0].rule else ""
            out.append(f"<tr><td><b>{e(rows[0].name)}</b>{rule}<br><small>{e(rows[0].about)}</small>")
            for r in rows:
                why = f"<br><small>{e(r.why)}</small>" if r.why and r.verdict != "pass" else ""
                out.append(f"<td class={_MARKS[r.verdict]}>{e(r.verdict)}{why}")
            out.append("</tr>")
        out.append("</table>")
    return "\n".join(out) + "\n"
