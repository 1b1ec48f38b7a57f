"use strict";
// Elements, numbers and names.

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

const NAMESPACE = "http://www.w3.org/2000/svg";
function draw(tag, attributes, text) {
  const node = document.createElementNS(NAMESPACE, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const isNumber = (v) => typeof v === "number" && Number.isFinite(v);

function short(v) {  // for tables and tips: four digits
  if (!isNumber(v)) return "";
  const size = Math.abs(v);
  if (v === 0) return "0";
  if (size >= 1e6 || size < 1e-3) return v.toExponential(2).replace("e+", "e");
  if (Number.isInteger(v)) return v.toLocaleString("en-US");
  return size >= 1000 ? Math.round(v).toLocaleString("en-US") : String(Number(v.toPrecision(4)));
}

function tickText(v) {
  if (v === 0) return "0";
  const size = Math.abs(v);
  if (size >= 1e5 || size < 1e-3) return v.toExponential(1).replace(".0e", "e").replace("e+", "e");
  return Number(v.toPrecision(6)).toLocaleString("en-US", {maximumFractionDigits: 6});
}

const FRACTIONS = /(^|_)(accuracy|top5|precision|recall|f1|auc|specificity|balanced_accuracy)(_|$)/;
const isFraction = (key) => FRACTIONS.test(key);
const metricText = (key, v) => (isFraction(key) && isNumber(v) ? (100 * v).toFixed(2) + " %" : short(v));
const metricName = (key) => key.replace(/_/g, " ");

function duration(seconds) {
  if (!isNumber(seconds)) return "";
  if (seconds < 60) return seconds.toFixed(1) + " s";
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? minutes + " min " + Math.round(seconds % 60) + " s" : Math.floor(minutes / 60) + " h " + (minutes % 60) + " min";
}

function bytes(n) {
  if (!isNumber(n)) return "";
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (n < 1000 || unit === "GB") return (n < 10 && unit !== "B" ? n.toFixed(1) : Math.round(n)) + " " + unit;
    n /= 1000;
  }
}

// Kernel names of the engine in the words of the field.
const OPERATORS = {
  Gemm: "GEMM", StridedMatMul: "Matrix multiplication", MatMul: "Matrix multiplication", Conv: "Convolution",
  SoftmaxCrossEntropyBoth: "Softmax cross-entropy (loss and gradient)", MultiUpdate: "Grouped optimizer update",
};
function operatorName(text) {
  const [kernel, phase] = text.split(", ");
  const found = /^(.*?)(GradX|GradW|GradB|Grad)$/.exec(kernel);
  const base = (name) => OPERATORS[name] || (phase === "update" ? name : name.replace(/([a-z])([A-Z][a-z])/g, "$1 $2"));
  if (!found) return base(kernel) + (phase === "update" && kernel !== "MultiUpdate" ? ", weight update" : phase && phase !== "update" ? ", " + phase : "");
  const of = {GradX: "input gradient", GradW: "weight gradient", GradB: "bias gradient", Grad: "gradient"}[found[2]];
  return base(found[1]) + ", " + of;
}
