// A line chart over epochs: hover and arrow keys, best epoch, round ticks, linear or logarithmic.

function roundTicks(low, high, count) {
  const raw = (high - low) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999) || 10 * power;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

function logTicks(low, high) {
  const all = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power)
    for (const m of [1, 2, 5]) all.push(Number((m * 10 ** power).toPrecision(3)));
  let inside = all.filter((v) => v >= low * 0.999 && v <= high * 1.001);
  if (inside.length > 7) inside = inside.filter((v) => Number.isInteger(Math.round(Math.log10(v) * 1e6) / 1e6));
  return inside.length >= 2 ? inside : roundTicks(low, high, 4).filter((v) => v > 0);
}

function epochTicks(first, last, room) {
  const most = Math.max(2, Math.floor(room / 48));
  let step = 1;
  while ((last - first) / step > most) step = step % 5 === 0 && String(step)[0] === "5" ? step * 2 : String(step)[0] === "2" ? step * 2.5 : step * 2;
  const ticks = [];
  for (let e = Math.ceil(first / step) * step; e <= last; e += step) ticks.push(e);
  return ticks.length ? ticks : [first];
}

// Stays as the reader left it when the page is drawn again.
const chartState = {};

// The first epochs of a loss in large units leave the others on the ground of a linear axis.
function spansDecades(series) {
  const values = series.flatMap((s) => s.points.map(([, v]) => v)).sort((a, b) => a - b);
  return values[0] > 0 && values[values.length - 1] > 50 * values[values.length >> 1];
}

// series: [{name, key, colour, dashed, points: [[epoch, value]], best: epoch}]
function chart(title, series, options = {}) {
  series = series.map((s) => ({...s, points: s.points.filter(([, v]) => isNumber(v))})).filter((s) => s.points.length);
  if (!series.length) return null;
  const state = (chartState[title] ||= {hidden: new Set(), log: options.log || (!options.percent && spansDecades(series))});
  const positive = series.every((s) => s.points.every(([, v]) => v > 0));
  const plot = make("div", {class: "plot", tabindex: 0, role: "group",
    "aria-label": `${title} over epochs; left and right arrow keys read the values`});
  const tip = make("div", {class: "tip", role: "status", hidden: true});
  const paint = () => paintChart(plot, tip, title, series.filter((s) => !state.hidden.has(s.name)), {...options, log: state.log && positive});
  const legend = make("div", {class: "legend"}, ...series.map((s) => make("button", {
    type: "button", "aria-pressed": String(!state.hidden.has(s.name)),
    onclick: (event) => {
      state.hidden.has(s.name) ? state.hidden.delete(s.name) : state.hidden.add(s.name);
      event.currentTarget.setAttribute("aria-pressed", String(!state.hidden.has(s.name)));
      paint();
    }}, make("span", {class: "swatch" + (s.dashed ? " dashed" : ""), style: `border-color: ${s.colour}`}), s.name)));
  const scale = positive && make("button", {class: "switch", type: "button", "aria-pressed": String(state.log),
    onclick: (event) => {
      state.log = !state.log;
      event.currentTarget.setAttribute("aria-pressed", String(state.log));
      paint();
    }}, "log scale");
  new ResizeObserver(paint).observe(plot);
  return make("figure", {class: "card"}, make("figcaption", {}, title, scale || null), plot, series.length > 1 ? legend : null);
}

function chartScale(series, options) {
  const values = series.flatMap((s) => s.points.map(([, v]) => v)), epochs = series.flatMap((s) => s.points.map(([e]) => e));
  let low = Math.min(...values), high = Math.max(...values);
  if (low === high) { const pad = Math.abs(low) * 0.1 || 1; low -= options.log ? low * 0.5 : pad; high += pad; }
  let ticks = options.log ? logTicks(low, high) : roundTicks(low, high, 5);
  if (!options.log && ticks.length > 1) {  // the axis begins and ends at a tick
    const step = ticks[1] - ticks[0];
    low = Math.floor(low / step + 1e-9) * step;
    high = Math.ceil(high / step - 1e-9) * step;
    ticks = roundTicks(low, high, Math.round((high - low) / step));
  }
  return {low, high, ticks, first: Math.min(...epochs), last: Math.max(...epochs)};
}

function paintChart(plot, tip, title, series, options) {
  const width = Math.max(220, plot.clientWidth || 480), height = 240, left = 58, right = 12, top = 22, bottom = 28;
  const svg = draw("svg", {viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": title});
  plot.replaceChildren(svg, tip);
  if (!series.length) return;
  const s = chartScale(series, options), across = width - left - right, up = height - top - bottom;
  const x = (epoch) => left + (s.last > s.first ? (across * (epoch - s.first)) / (s.last - s.first) : across / 2);
  const share = options.log ? (v) => Math.log(v / s.low) / Math.log(s.high / s.low) : (v) => (v - s.low) / (s.high - s.low);
  const y = (v) => top + up * (1 - share(v));
  for (const t of s.ticks) {
    svg.append(draw("line", {class: "grid", x1: left, x2: width - right, y1: y(t), y2: y(t)}),
      draw("text", {x: left - 6, y: y(t) + 4, "text-anchor": "end"}, options.percent ? Number((100 * t).toPrecision(6)) + " %" : tickText(t)));
  }
  for (const e of epochTicks(s.first, s.last, across)) svg.append(draw("text", {x: x(e), y: height - 10, "text-anchor": "middle"}, e));
  const bests = new Set(series.map((line) => line.best).filter((e) => e > 0));
  if (bests.size === 1) {
    const [best] = bests;
    const words = `best: epoch ${best}`, half = 3.2 * words.length;  // above the curves, inside the drawing
    svg.append(draw("line", {class: "bestline", x1: x(best), x2: x(best), y1: top - 4, y2: height - bottom}),
      draw("text", {x: Math.min(Math.max(x(best), left + half), width - half - 2), y: 12, "text-anchor": "middle"}, words));
  }
  for (const line of series) {
    svg.append(draw("polyline", {fill: "none", stroke: line.colour, "stroke-width": 2, "stroke-linejoin": "round",
      "stroke-dasharray": line.dashed ? "5 4" : "none", points: line.points.map(([e, v]) => `${x(e).toFixed(1)},${y(v).toFixed(1)}`).join(" ")}));
    for (const [e, v] of line.points)
      if (line.points.length <= 40 || e === line.best)
        svg.append(draw("circle", {cx: x(e), cy: y(v), r: e === line.best ? 5 : 2.5, fill: e === line.best ? "var(--card)" : line.colour,
          stroke: line.colour, "stroke-width": e === line.best ? 2.5 : 0}));
  }
  listen(plot, svg, tip, series, {x, top, bottom: height - bottom, width});
}

function listen(plot, svg, tip, series, at) {
  const epochs = [...new Set(series.flatMap((s) => s.points.map(([e]) => e)))].sort((a, b) => a - b);
  const cursor = draw("line", {class: "cursor", y1: at.top, y2: at.bottom, visibility: "hidden"});
  svg.append(cursor);
  let shown = -1;
  const show = (k) => {
    shown = Math.max(0, Math.min(epochs.length - 1, k));
    const epoch = epochs[shown], where = at.x(epoch);
    cursor.setAttribute("x1", where);
    cursor.setAttribute("x2", where);
    cursor.setAttribute("visibility", "visible");
    tip.replaceChildren(make("b", {}, "epoch " + epoch), ...series.flatMap((s) => {
      const point = s.points.find(([e]) => e === epoch);
      return point ? [make("div", {}, make("span", {class: "swatch", style: `border-color: ${s.colour}`}), `${s.name} ${metricText(s.key, point[1])}`)] : [];
    }));
    tip.hidden = false;
    tip.style.left = where < at.width / 2 ? where + 10 + "px" : "auto";
    tip.style.right = where < at.width / 2 ? "auto" : at.width - where + 10 + "px";
  };
  const hide = () => {
    tip.hidden = true;
    cursor.setAttribute("visibility", "hidden");
  };
  plot.onpointermove = (event) => {
    const px = event.clientX - plot.getBoundingClientRect().left;
    show(epochs.reduce((best, e, k) => (Math.abs(at.x(e) - px) < Math.abs(at.x(epochs[best]) - px) ? k : best), 0));
  };
  plot.onpointerleave = hide;
  plot.onblur = hide;
  plot.onkeydown = (event) => {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!by) return;
    event.preventDefault();
    show(shown < 0 ? (by > 0 ? 0 : epochs.length - 1) : shown + by);
  };
}
