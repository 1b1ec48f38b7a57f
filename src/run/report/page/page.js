// One run, several runs, or the board that follows all runs of a folder.

function sectionsOf(run) {
  return [confusion(run), predictions(run),
    make("div", {class: "two", style: "margin-top: 32px"}, ...[settings(run), dataCard(run), operators(run), memory(run)].filter(Boolean))].filter(Boolean);
}

function report(runs) {
  if (runs.length === 1) return [summaryCard(runs[0]), charts(runs), epochTable(runs[0]), ...sectionsOf(runs[0])].filter(Boolean);
  return [comparison(runs), charts(runs), ...runs.map((run) => make("details", {}, make("summary", {}, run.name), summaryCard(run), ...sectionsOf(run)))];
}

// ---- board -------------------------------------------------------------------------------------

const board = {runs: [], chosen: [], shown: "", sort: {column: "run", up: true}, lost: false};
const token = new URLSearchParams(location.search).get("token") || "";

async function ask(what) {
  const answer = await fetch(`${what}${what.includes("?") ? "&" : "?"}token=${encodeURIComponent(token)}`, {cache: "no-store"});
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

const COLUMNS = [
  ["run", (r) => r.name, (r) => r.name],
  ["status", (r) => status(r), (r) => status(r)],
  ["epochs", (r) => r.epochs.length, (r) => `${r.epochs.length} of ${plain(setting(r, "epochs")?.value) || "?"}`],
  ["best", (r) => r.best, (r) => (r.best_epoch ? `${metricName(r.metric)} ${metricText(r.metric, r.best)}` : "")],
  ["train loss", (r) => r.epochs[r.epochs.length - 1]?.train_loss ?? Infinity, (r) => short(r.epochs[r.epochs.length - 1]?.train_loss)],
  ["started", (r) => r.environment.started || "", (r) => (r.environment.started || "").replace("T", " ").replace("Z", "")],
];

function sortedRuns() {
  const value = COLUMNS.find(([name]) => name === board.sort.column)[1];
  const order = [...board.runs].sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0));
  return board.sort.up ? order : order.reverse();
}

function runTable() {
  const other = board.runs.length > 1 ? differing(board.runs) : [];
  const head = COLUMNS.map(([name]) => {
    const sorted = board.sort.column === name;
    return make("th", {scope: "col", class: "text", "aria-sort": sorted ? (board.sort.up ? "ascending" : "descending") : "none"},
      make("button", {type: "button", onclick: () => {
        board.sort = {column: name, up: sorted ? !board.sort.up : true};
        paintBoard();
      }}, name + (sorted ? (board.sort.up ? " ↑" : " ↓") : "")));
  });
  const rows = sortedRuns().map((run) => {
    const box = make("input", {type: "checkbox", "aria-label": `show ${run.name}`, onchange: (event) => {
      board.chosen = event.currentTarget.checked ? [...board.chosen, run.name] : board.chosen.filter((n) => n !== run.name);
      refresh();
    }});
    box.checked = board.chosen.includes(run.name);
    return [make("label", {}, box, " ", run.name), ...COLUMNS.slice(1).map(([, , text]) => text(run)),
      ...other.map((o) => o.values[board.runs.indexOf(run)])];
  });
  return make("section", {class: "card"}, make("h1", {}, "Runs"), scrolling("runs", table([...head, ...other.map((o) => o.key)], rows, {text: [0, 1, 2, 3]})));
}

function paintBoard() {
  const page = document.getElementById("page"), top = scrollY, focus = document.activeElement?.getAttribute("aria-label");
  const open = new Set([...document.querySelectorAll("details[open] > summary")].map((s) => s.textContent));
  const notice = board.lost ? make("p", {class: "notice", role: "alert"}, "The board has ended, or does not answer. This page shows what was known.") : null;
  page.replaceChildren(...[notice, runTable(), make("div", {style: "height: 16px"}),
    ...(board.details?.length ? report(board.details).map((node) => demote(node)) : [make("p", {class: "soft"}, "Choose a run above; several are drawn over each other.")])].filter(Boolean));
  for (const s of page.querySelectorAll("summary")) if (open.has(s.textContent)) s.parentNode.open = true;
  scrollTo(0, top);
  if (focus) [...page.querySelectorAll("[aria-label]")].find((n) => n.getAttribute("aria-label") === focus)?.focus({preventScroll: true});
}

function demote(node) {  // the board has its own first heading
  for (const h of node.querySelectorAll("h1")) {
    const lower = make("h2", {style: "margin-top: 0"}, ...h.childNodes);
    h.replaceWith(lower);
  }
  return node;
}

async function refresh() {
  try {
    const runs = await ask("runs");
    if (!board.shown && runs.length && !board.chosen.length) {
      const newest = [...runs].sort((a, b) => a.age_seconds - b.age_seconds)[0];
      board.chosen = [newest.name];
    }
    const details = [];
    for (const name of board.chosen) if (runs.some((r) => r.name === name)) details.push(await ask("run?name=" + encodeURIComponent(name)));
    const now = JSON.stringify([runs, details, board.chosen].flat().map((r) => ({...r, age_seconds: status({...r, age_seconds: r.age_seconds ?? 0})})));
    const changed = now !== board.shown || board.lost;
    Object.assign(board, {runs, details, shown: now, lost: false});
    if (changed) paintBoard();
  } catch (error) {
    if (!board.lost) {
      board.lost = true;
      paintBoard();
    }
  }
}

const given = JSON.parse(document.getElementById("data").textContent);
if (given.board) {
  refresh();
  setInterval(() => document.hidden || refresh(), 2000);
} else {
  const paint = () => document.getElementById("page").replaceChildren(...report(given.runs));
  paint();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);  // colours of the confusion matrix
}
