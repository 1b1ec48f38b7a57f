// board: a page on this machine that shows all runs of a folder and follows those that are running.
#include <csignal>
#include <cstdio>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "cli/common/commands.hpp"
#include "cli/processes/local_server.hpp"
#include "core/error.hpp"
#include "run/report/list.hpp"
#include "run/report/report.hpp"

namespace onnxtrain::cli {

namespace {

using nlohmann::ordered_json;

volatile std::sig_atomic_t board_stops = 0;
void stop_board(int) { board_stops = 1; }

Answer as_json(const ordered_json& j) {
  return {200, "application/json",
          j.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n"};
}

Answer page_of(const std::string& folder, const std::string& path,
               const std::map<std::string, std::string>& given) {
  if (path == "/") return {200, "text/html; charset=utf-8", run::board_page()};
  ordered_json list = ordered_json::array();
  for (const std::string& run : run::runs_in(folder)) {
    const run::Folder at(run);
    if (path == "/runs") list.push_back(run::report_data(at, false));
    const std::string name = std::filesystem::path(run).filename().string();
    if (path == "/run" && given.count("name") && given.at("name") == name)
      return as_json(run::report_data(at));
  }
  if (path == "/runs") return as_json(list);
  return {404, "text/plain", "there is no such page or run\n"};
}

int board(std::string folder, int port) {
  while (folder.size() > 1 && folder.ends_with("/")) folder.pop_back();
  if (run::runs_in(folder).empty())
    throw Error(
        ErrorKind::kFailed, "OT4500", cat("there is no run in '", folder, "'"),
        "train first, for example  onnxtrain demo , or name the folder that holds the runs");
  LocalServer server(port, [folder](const std::string& path, const auto& given) {
    return page_of(folder, path, given);
  });
  board_stops = 0;
  struct sigaction action {};
  action.sa_handler = stop_board;  // without SA_RESTART: poll returns at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::printf("%s\n", server.address().c_str());
  std::fflush(stdout);
  say("board", cat(run::runs_in(folder).size(), " runs in ", folder,
                   "; only this machine can open it; Ctrl-C ends it"));
  server.run(board_stops);
  return 0;
}

}  // namespace

void add_board(Registry& r) {
  static std::string folder = "runs";
  static int port = 0;
  CLI::App* c = r.add("board", "a local web page with all runs, live",
                      "  onnxtrain board\n  onnxtrain board elsewhere/ --port 8000");
  c->add_option("FOLDER", folder, "where the runs lie, or one run");
  c->add_option("--port", port, "of the page; 0: any that is free")->check(CLI::Range(0, 65535));
  r.on(c, [] { return board(folder, port); });
}

}  // namespace onnxtrain::cli
