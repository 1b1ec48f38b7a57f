// The report, from the files of the run folder.
#include "run/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "run/epoch_log.hpp"

namespace onnxtrain::run {

namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string escaped(const std::string& s) {
  std::string out;
  for (char c : s) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", v);
  return text;
}

// Of an axis: short enough for the room beside it.
std::string label(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", v);
  return text;
}

std::string content(const std::string& path) {
  return fs::exists(path) ? read_file(path, 64 << 20) : std::string();
}

struct Line {
  std::string name, colour;
};

// One drawing: the named columns over the steps.
std::string chart(const std::string& title, const std::vector<ordered_json>& rows,
                  const std::vector<Line>& lines) {
  constexpr double kWidth = 560, kHeight = 240, kLeft = 76, kBottom = 30, kTop = 12;
  double low = INFINITY, high = -INFINITY;
  auto each = [&](const std::string& name, auto&& f) {
    for (size_t k = 0; k < rows.size(); ++k)
      if (rows[k].contains(name) && rows[k][name].is_number()) f(k, double(rows[k][name]));
  };
  for (const Line& l : lines)
    each(l.name, [&](size_t, double v) {
      low = std::min(low, v);
      high = std::max(high, v);
    });
  if (!(low <= high)) return "";
  if (high == low) high = low + 1;
  auto x = [&](size_t k) {
    return kLeft +
           (kWidth - kLeft - 10) * (rows.size() > 1 ? double(k) / double(rows.size() - 1) : 0.5);
  };
  auto y = [&](double v) {
    return kTop + (kHeight - kTop - kBottom) * (1 - (v - low) / (high - low));
  };
  std::string out = cat("<figure><figcaption>", title, "</figcaption><svg viewBox='0 0 ", kWidth,
                        " ", kHeight, "' role='img'>");
  for (int k = 0; k <= 4; ++k) {
    double v = low + (high - low) * k / 4;
    out += cat("<line class='grid' x1='", kLeft, "' x2='", kWidth - 10, "' y1='", y(v), "' y2='",
               y(v), "'/><text x='", kLeft - 6, "' y='", y(v) + 4, "' text-anchor='end'>", label(v),
               "</text>");
  }
  out += cat("<text x='", kLeft, "' y='", kHeight - 8, "'>epoch ", rows.front()["epoch"].dump(),
             "</text><text x='", kWidth - 10, "' y='", kHeight - 8, "' text-anchor='end'>epoch ",
             rows.back()["epoch"].dump(), "</text>");
  for (const Line& l : lines) {
    std::string points;
    each(l.name, [&](size_t k, double v) { points += cat(x(k), ",", y(v), " "); });
    if (points.empty()) continue;
    out += cat("<polyline fill='none' stroke='", l.colour, "' stroke-width='2' points='", points,
               "'/>");
    each(l.name, [&](size_t k, double v) {
      out += cat("<circle cx='", x(k), "' cy='", y(v), "' r='3' fill='", l.colour, "'><title>",
                 l.name, " ", number(v), "</title></circle>");
    });
  }
  out += "</svg><p class='legend'>";
  for (const Line& l : lines)
    if (!rows.empty() && rows.back().contains(l.name))
      out += cat("<span style='color:", l.colour, "'>&#9632;</span> ", escaped(l.name), " &nbsp; ");
  return out + "</p></figure>";
}

std::string epoch_table(const std::vector<ordered_json>& rows) {
  std::vector<std::string> keys;
  for (const auto& r : rows)
    for (const auto& [key, value] : r.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  std::string out = "<table><tr>";
  for (const auto& key : keys) out += "<th>" + escaped(key) + "</th>";
  out += "</tr>";
  for (const auto& r : rows) {
    out += "<tr>";
    for (const auto& key : keys)
      out += "<td>" +
             (!r.contains(key)     ? std::string()
              : r[key].is_number() ? number(double(r[key]))
              : r[key].is_string() ? escaped(r[key])
                                   : std::string()) +
             "</td>";
    out += "</tr>";
  }
  return out + "</table>";
}

// The epoch whose weights are in model.onnx; "" when the log does not say.
std::string best_epoch(const std::vector<ordered_json>& rows) {
  std::string epoch;
  for (const auto& r : rows)
    if (r.contains("best") && r.contains("epoch")) epoch = r["epoch"].dump();
  return epoch;
}

std::string confusion_table(const std::string& text, const std::vector<std::string>& names,
                            const std::string& epoch) {
  auto m = ordered_json::parse(text, nullptr, false);
  if (!m.is_array() || m.empty() || m.size() > 60) return "";
  auto name = [&](size_t k) { return k < names.size() ? escaped(names[k]) : std::to_string(k); };
  double most = 1;
  for (const auto& row : m)
    for (const auto& v : row) most = std::max(most, double(v));
  std::string out =
      cat("<h2>Confusion", epoch.empty() ? "" : cat(" of epoch ", epoch, ", the best"),
          " (rows: true class, columns: predicted)</h2><table><tr><th></th>");
  for (size_t k = 0; k < m.size(); ++k) out += "<th>" + name(k) + "</th>";
  out += "</tr>";
  for (size_t i = 0; i < m.size(); ++i) {
    out += "<tr><th>" + name(i) + "</th>";
    for (size_t k = 0; k < m[i].size(); ++k) {
      double share = double(m[i][k]) / most;
      const char* base = i == k ? "40,140,60," : "200,60,40,";
      out += cat("<td style='background:rgba(", base, std::round(share * 80) / 100, ")'>",
                 m[i][k].dump(), "</td>");
    }
    out += "</tr>";
  }
  return out + "</table>";
}

std::string operator_table(const std::string& text) {
  auto list = ordered_json::parse(text, nullptr, false);
  if (!list.is_array() || list.empty()) return "";
  std::string out =
      "<h2>Slowest operators</h2><table><tr><th>operator</th><th>calls</th><th>ms per step</th>"
      "<th>share</th></tr>";
  for (const auto& row : list)
    out += cat("<tr><th>", escaped(row.value("operator", "")), "</th><td>",
               row.value("calls", int64_t(0)), "</td><td>", number(row.value("ms_per_step", 0.0)),
               "</td><td>", std::round(row.value("share", 0.0) * 1000) / 10, " %</td></tr>");
  return out + "</table>";
}

std::vector<std::string> class_names(const ordered_json& card) {
  std::vector<std::string> names;
  if (!card.is_object() || !card.contains("onnxtrain.classes")) return names;
  auto list = ordered_json::parse(std::string(card["onnxtrain.classes"]), nullptr, false);
  if (list.is_array())
    for (const auto& n : list)
      if (n.is_string()) names.push_back(n);
  return names;
}

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;"
    "color:#222}table{border-collapse:collapse;font-size:13px;display:block;max-width:100%;"
    "overflow-x:auto}td,th{border:1px solid #ddd;"
    "padding:2px 8px;text-align:right}figure{display:inline-block;margin:0 1em 1em 0;"
    "width:520px;max-width:100%}td{overflow-wrap:anywhere}"
    "svg{width:100%;font-size:11px}.grid{stroke:#e4e4e4}pre{background:#f6f6f6;padding:1em;"
    "overflow:auto}.legend{margin:0;font-size:13px}figcaption{font-weight:600}";

}  // namespace

std::string run_report(const Folder& run) {
  std::vector<ordered_json> rows = epoch_lines(run.path());
  auto card = ordered_json::parse(content(run.path() + "/data.json"), nullptr, false);
  std::string name = fs::path(run.path()).filename().string();
  std::string out =
      cat("<!doctype html><html lang='en'><meta charset='utf-8'>"
          "<meta name='viewport' content='width=device-width,initial-scale=1'><title>",
          escaped(name), "</title><style>", kStyle, "</style><h1>", escaped(name), "</h1>");
  if (!rows.empty()) {
    out += chart("loss", rows, {{"train_loss", "#1f6fb4"}, {"valid_loss", "#d9730d"}});
    out += chart("metrics", rows,
                 {{"valid_accuracy", "#2c8c3c"},
                  {"valid_top5", "#8a63d2"},
                  {"valid_mae", "#2c8c3c"},
                  {"valid_rmse", "#8a63d2"}});
    out += chart("learning rate", rows, {{"lr", "#555"}});
    out += chart("gradient norm", rows, {{"gradient_norm", "#b0306a"}});
    out += "<h2>Epochs</h2>" + epoch_table(rows);
  } else {
    out += "<p>No epoch is finished yet.</p>";
  }
  out +=
      confusion_table(content(run.path() + "/confusion.json"), class_names(card), best_epoch(rows));
  out += operator_table(content(run.path() + "/operators.json"));
  if (card.is_object()) {
    out += "<h2>Data</h2><table>";
    for (const auto& [key, value] : card.items())
      out += "<tr><th>" + escaped(key) + "</th><td style='text-align:left'>" +
             escaped(value.is_string() ? std::string(value) : value.dump()) + "</td></tr>";
    out += "</table>";
  }
  for (const char* file : {"command.txt", "config.toml", "env.json"})
    if (std::string text = content(run.path() + "/" + file); !text.empty())
      out += cat("<h2>", file, "</h2><pre>", escaped(text), "</pre>");
  return out + "</html>\n";
}

}  // namespace onnxtrain::run
