// The parts of a report, each a function of one run (or of all): an element, or null when there is nothing to show.

const COLOURS = [0, 1, 2, 3, 4, 5, 6, 7].map((k) => `var(--s${k})`);

function scrolling(label, child) {
  return make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": label}, child);
}

function table(head, rows, options = {}) {
  const cell = (tag, v, text) => (v instanceof Node && /^T[DH]$/.test(v.tagName) ? v : make(tag, {class: text ? "text" : null}, v ?? ""));
  return make("table", {class: options.class},
    make("thead", {}, make("tr", {}, ...head.map((h, k) => (h instanceof Node ? h : make("th", {scope: "col", class: options.text?.includes(k) ? "text" : null}, h))))),
    make("tbody", {}, ...rows.map((row) => make("tr", {class: row.marked ? "best" : null}, ...row.map((v, k) =>
      (k === 0 && !options.plain ? make("th", {scope: "row", class: "text"}, v) : cell("td", v, options.text?.includes(k))))))));
}

const sum = (list) => list.reduce((a, b) => a + b, 0);
const setting = (run, key) => run.settings.find((s) => s.key === key);
const plain = (value) => (value || "").replace(/^"(.*)"$/, "$1");

function status(run) {
  if (run.ended) return "finished";
  return run.age_seconds < 120 ? "running" : "stopped without an end";
}

function summaryCard(run) {
  const last = run.epochs[run.epochs.length - 1] || {}, env = run.environment, data = run.data || {};
  const facts = [];
  const add = (name, value, note) => value !== "" && value !== undefined && facts.push([name, value, note]);
  if (run.best_epoch) add("best " + metricName(run.metric), metricText(run.metric, run.best), `epoch ${run.best_epoch} of ${run.epochs.length}`);
  add("train loss", short(last.train_loss), last.valid_loss !== undefined ? "validation loss " + short(last.valid_loss) : "");
  add("duration", duration(sum(run.epochs.map((e) => e.seconds || 0))), env.started ? "started " + env.started.replace("T", " ").replace("Z", " UTC") : "");
  const speeds = run.epochs.map((e) => e.samples_per_second).filter(isNumber).sort((a, b) => a - b);
  add("samples/s", speeds.length ? Math.round(speeds[speeds.length >> 1]).toLocaleString("en-US") : "", [env.threads && env.threads + (env.threads === 1 ? " thread" : " threads"), env.simd].filter(Boolean).join(", "));
  add("parameters", isNumber(env.parameters) ? env.parameters.toLocaleString("en-US") : undefined,
    isNumber(env.parameters_trained) ? env.parameters_trained.toLocaleString("en-US") + " trained" : "");
  if (isNumber(data.train_rows)) add("data", data.train_rows.toLocaleString("en-US") + " rows", data.valid_rows ? data.valid_rows.toLocaleString("en-US") + " for validation" : "no validation data");
  if (env.memory) add("peak memory", bytes(env.memory.peak_process_bytes), "of the process");
  return make("section", {class: "card", "aria-label": "summary"},
    make("h1", {}, run.name),
    make("p", {class: "soft" + (status(run) === "running" ? " live" : "")}, [status(run), plain(setting(run, "model")?.value).split("/").pop()].filter(Boolean).join(" · ")),
    make("dl", {class: "facts"}, ...facts.map(([name, value, note]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, value, note ? make("small", {}, note) : null)))));
}

// Charts of one run, or of several over each other: which keys go together.
function chartGroups(runs) {
  const keys = [...new Set(runs.flatMap((r) => r.epochs.flatMap((e) => Object.keys(e))))];
  const metrics = keys.filter((k) => k.startsWith("valid_") && k !== "valid_loss");
  const fractions = metrics.filter((k) => isFraction(k));
  const groups = [{title: "loss", keys: ["train_loss", "valid_loss"]}];
  if (fractions.length) groups.push({title: fractions.length === 1 ? metricName(fractions[0]) : "metrics", keys: fractions, percent: true});
  for (const k of metrics.filter((m) => !isFraction(m))) groups.push({title: metricName(k), keys: [k]});
  groups.push({title: "learning rate", keys: ["lr"]}, {title: "gradient norm", keys: ["gradient_norm"]}, {title: "samples per second", keys: ["samples_per_second"]});
  return groups;
}

function charts(runs) {
  const many = runs.length > 1;
  const figures = chartGroups(runs).map((group) => chart(group.title, runs.flatMap((run, r) => group.keys.map((key, k) => ({
    name: (many ? run.name + (group.keys.length > 1 ? " " : "") : "") + (many && group.keys.length === 1 ? "" : metricName(key)), key,
    colour: COLOURS[(many ? r : k) % COLOURS.length],
    dashed: many && key === "train_loss",
    best: ["lr", "gradient_norm", "samples_per_second"].includes(key) ? 0 : run.best_epoch,
    points: run.epochs.map((e) => [e.epoch, e[key]]),
  }))), {percent: group.percent})).filter(Boolean);
  if (!figures.length) return make("p", {class: "soft"}, "No epoch is finished yet.");
  return make("section", {class: "charts", "aria-label": "curves"}, ...figures);
}

function epochTable(run) {
  const keys = [...new Set(run.epochs.flatMap((e) => Object.keys(e)))].filter((k) => k !== "best" && k !== "watched");
  const rows = run.epochs.map((e) => {
    const row = keys.map((k) => (k === "epoch" ? String(e[k]) : metricText(k, e[k])));
    row.marked = e.epoch === run.best_epoch;
    return row;
  });
  if (!rows.length) return null;
  return make("details", {}, make("summary", {}, `Table of ${rows.length} epochs`), scrolling("epochs", table(keys.map(metricName), rows)));
}

// ---- confusion matrix --------------------------------------------------------------------------

function rgbOf(variable) {
  const probe = make("span", {style: `color: ${variable}`});
  document.body.append(probe);
  const found = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  probe.remove();
  return found;
}

function shade(from, to, share) {
  const mixed = from.map((v, k) => Math.round(v + (to[k] - v) * share));
  const linear = mixed.map((v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return `background: rgb(${mixed.join(" ")}); color: ${1.05 / (light + 0.05) > (light + 0.05) / 0.05 ? "#fff" : "#000"}`;
}

function confusion(run) {
  const m = run.confusion;
  if (!Array.isArray(m) || !m.length || m.length > 100) return null;
  const name = (k) => String(run.classes?.[k] ?? k), rate = (a, b) => (b ? ((100 * a) / b).toFixed(1) + " %" : "none");
  const rows = m.map(sum), columns = m.map((_, k) => sum(m.map((row) => row[k])));
  const card = rgbOf("var(--card)"), right = rgbOf("var(--s0)"), wrong = rgbOf("var(--s1)");
  const body = m.map((row, i) => [name(i), ...row.map((v, k) => make("td", {
    style: shade(card, i === k ? right : wrong, rows[i] ? v / rows[i] : 0), title: `true ${name(i)}, predicted ${name(k)}: ${v}`}, String(v))),
  make("td", {class: "rate"}, rate(m[i][i], columns[i])), make("td", {class: "rate"}, rate(m[i][i], rows[i])), make("td", {class: "rate"}, rows[i].toLocaleString("en-US"))]);
  return make("section", {}, make("h2", {}, run.confusion_title || "Confusion"),
    make("p", {class: "soft"}, "Rows: true class. Columns: predicted class. Colour: share of the row."),
    make("div", {class: "card"}, scrolling("confusion matrix", table(["", ...m.map((_, k) => name(k)), "precision", "recall", "rows"], body, {class: "confusion"}))));
}

// ---- predictions -------------------------------------------------------------------------------

function thumbnail(image, label) {
  const canvas = make("canvas", {width: image.width, height: image.height, role: "img", "aria-label": label});
  const raw = atob(image.pixels), context = canvas.getContext("2d"), out = context.createImageData(image.width, image.height);
  for (let k = 0; k < image.width * image.height; ++k)
    for (let c = 0; c < 4; ++c)
      out.data[4 * k + c] = c === 3 ? 255 : raw.charCodeAt(k * image.channels + (image.channels === 3 ? c : 0));
  context.putImageData(out, 0, 0);
  return canvas;
}

function tile(p, run, kind) {
  const name = (v) => (kind === "regression" ? short(v) : String(run.classes?.[v] ?? v));
  const target = p.target.map(name).join(", "), predicted = p.predicted.map(name).join(", ");
  const verdict = kind === "regression" ? null : p.target[0] === p.predicted[0] ? "right" : "wrong";
  return make("li", {},
    p.image ? thumbnail(p.image, `validation row ${p.row}`) : null,
    make("div", {class: verdict}, kind === "regression" ? `predicted ${predicted}` : `${predicted}${isNumber(p.probability) ? ", " + (100 * p.probability).toFixed(1) + " %" : ""}`),
    make("div", {}, "true " + target), make("div", {class: "soft"}, make("span", {}, `row ${p.row}, `), " ", make("span", {}, `${kind === "regression" ? "error" : "loss"} ${short(p.loss)}`)));
}

function predictions(run) {
  const p = run.predictions;
  if (!p) return null;
  const list = (rows) => make("ul", {class: "tiles"}, ...rows.map((r) => tile(r, run, p.kind)));
  return make("section", {}, make("h2", {}, "Predictions on validation data"),
    make("div", {class: "two"}, make("section", {class: "card"}, make("h3", {}, "Worst"), list(p.worst)),
      make("section", {class: "card"}, make("h3", {}, "Sample"), list(p.sample))));
}

// ---- settings, data, operators, memory ---------------------------------------------------------

function settings(run) {
  if (!run.settings.length) return null;
  const rows = (list) => list.map((s) => [s.key, plain(s.value), s.source]);
  const chosen = run.settings.filter((s) => s.source !== "default"), rest = run.settings.filter((s) => s.source === "default");
  return make("section", {class: "card"}, make("h2", {}, "Settings that were chosen"),
    chosen.length ? scrolling("settings that were chosen", table(["setting", "value", "from"], rows(chosen), {text: [0, 1, 2]})) : make("p", {}, "All settings are defaults."),
    make("details", {}, make("summary", {}, `${rest.length} defaults`), scrolling("defaults", table(["setting", "value", "from"], rows(rest), {text: [0, 1, 2]}))),
    run.command ? make("details", {}, make("summary", {}, "Command"), make("pre", {tabindex: 0}, run.command.trim())) : null);
}

const CARD_WORDS = {train_rows: "rows for training", valid_rows: "rows for validation", "onnxtrain.data": "fingerprint"};
function dataCard(run) {
  if (!run.data) return null;
  const value = (v) => (Array.isArray(v) ? v.join("; ") : typeof v === "number" ? v.toLocaleString("en-US") : typeof v === "object" ? JSON.stringify(v) : String(v));
  const rows = Object.entries(run.data).map(([k, v]) => [CARD_WORDS[k] || k.replace("onnxtrain.", "").replace(/_/g, " "), value(v)]).filter(([, v]) => v !== "");
  return make("section", {class: "card"}, make("h2", {}, "Data"), scrolling("data", table(["", ""], rows, {text: [0, 1]})));
}

function operators(run) {
  if (!Array.isArray(run.operators) || !run.operators.length) return null;
  const most = Math.max(...run.operators.map((o) => o.share));
  const rows = run.operators.map((o) => [make("span", {title: o.operator}, operatorName(o.operator)), short(o.ms_per_step), String(o.calls), (100 * o.share).toFixed(1) + " %",
    make("td", {class: "text"}, make("span", {class: "bar", style: `width: ${Math.max(1, (90 * o.share) / most)}px`}))]);
  return make("section", {class: "card"}, make("h2", {}, "Slowest operators"),
    scrolling("slowest operators", table(["operator", "ms per step", "calls", "share", make("td", {}, "")], rows, {text: [0]})));
}

function memory(run) {
  const m = run.environment.memory;
  if (!m) return null;
  const parts = [["weights and optimizer state", m.state_bytes], ["one step (activations, gradients, workspace)", m.step_bytes],
    ["one step without recomputation", m.step_bytes_without_limit], ["peak of the process", m.peak_process_bytes]].filter(([, v]) => isNumber(v));
  const most = Math.max(...parts.map(([, v]) => v), 1);
  const rows = parts.map(([name, v]) => [name, bytes(v), make("td", {class: "text"}, make("span", {class: "bar", style: `width: ${Math.max(1, (120 * v) / most)}px`}))]);
  return make("section", {class: "card"}, make("h2", {}, "Memory plan"), scrolling("memory plan", table(["", "", make("td", {}, "")], rows, {text: [0]})),
    make("p", {class: "soft"}, `${m.nodes_computed_twice || 0} operators are recomputed to save memory. Limit: ${m.limit_bytes ? bytes(m.limit_bytes) : "none"}.`));
}

// ---- several runs ------------------------------------------------------------------------------

function differing(runs) {  // settings whose values are not the same in all runs; "" where a run has none
  const keys = [...new Set(runs.flatMap((r) => r.settings.map((s) => s.key)))].filter((k) => !["out", "resume", "model"].includes(k) || runs.length > 1);
  const value = (run, key) => plain(setting(run, key)?.value);
  return keys.filter((k) => k !== "out" && new Set(runs.map((r) => value(r, k))).size > 1).map((key) => ({key, values: runs.map((r) => value(r, key))}));
}

function comparison(runs) {
  const other = differing(runs);
  const rows = runs.map((run, k) => [
    make("span", {}, make("span", {class: "swatch", style: `border-color: ${COLOURS[k % COLOURS.length]}`}), run.name),
    run.best_epoch ? `${metricName(run.metric)} ${metricText(run.metric, run.best)}` : "", run.best_epoch ? `${run.best_epoch} of ${run.epochs.length}` : String(run.epochs.length),
    short(run.epochs[run.epochs.length - 1]?.train_loss), duration(sum(run.epochs.map((e) => e.seconds || 0))), ...other.map((o) => o.values[k])]);
  return make("section", {class: "card"}, make("h1", {}, `${runs.length} runs`),
    scrolling("runs", table(["run", "best", "epoch", "train loss", "duration", ...other.map((o) => o.key)], rows, {text: [0]})));
}
