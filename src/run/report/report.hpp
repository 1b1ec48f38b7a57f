// report.html: one file that needs no network. The page (page/) draws what it finds in the data of
// one run or of several: summary, curves, confusion matrix, predictions, data, settings, operators,
// memory.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "run/folder/folder.hpp"

namespace onnxtrain::run {

// What the page knows of a run. details: also predictions, confusion, operators and the data card.
nlohmann::ordered_json report_data(const Folder& run, bool details = true);

std::string run_report(const Folder& run);
// Several runs in one page, their curves over each other.
std::string run_report(const std::vector<std::string>& runs);
// The page that shows all runs of a folder and asks for news (onnxtrain board).
std::string board_page();

}  // namespace onnxtrain::run
