// The page with the data inside it.
#include "run/report/report.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "run/report/page_files.hpp"

namespace onnxtrain::run {

namespace {

using nlohmann::ordered_json;

// JSON inside a script element: nothing in it ends the element.
std::string embedded(const ordered_json& j) {
  std::string out;
  for (char c : j.dump(-1, ' ', false, ordered_json::error_handler_t::replace))
    out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

std::string page(const std::string& title, const ordered_json& data) {
  std::string name;
  for (char c : title)
    name += c == '<' ? std::string("&lt;") : c == '&' ? std::string("&amp;") : std::string(1, c);
  return cat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>",
      name, "</title>\n<style>\n", page_style(), "</style>\n</head>\n<body>\n<main id=\"page\">",
      "<noscript>This page draws its curves with JavaScript; the numbers are in metrics.csv "
      "beside it.</noscript></main>\n<script type=\"application/json\" id=\"data\">",
      embedded(data), "</script>\n<script>\n", page_script(), "</script>\n</body>\n</html>\n");
}

}  // namespace

std::string run_report(const Folder& run) {
  return run_report(std::vector<std::string>{run.path()});
}

std::string run_report(const std::vector<std::string>& runs) {
  ordered_json list = ordered_json::array();
  std::string title;
  for (const std::string& path : runs) {
    list.push_back(report_data(Folder(path)));
    title += (title.empty() ? "" : ", ") + std::string(list.back()["name"]);
  }
  return page(title + " · onnxtrain", {{"runs", list}});
}

std::string board_page() { return page("onnxtrain board", {{"board", true}}); }

}  // namespace onnxtrain::run
