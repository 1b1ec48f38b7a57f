// roff with the macros of man(7).
#include "cli/reference/man_page.hpp"

#include "core/error.hpp"
#include "core/version.hpp"

namespace onnxtrain::cli {

namespace {

// Text as roff: no character of it is an instruction.
std::string plain(const std::string& s) {
  std::string out;
  bool line_start = true;
  for (char c : s) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    line_start = c == '\n';
  }
  return out;
}

std::string option_text(const OptionEntry& o) {
  std::string names;
  for (const std::string& n : o.names) names += (names.empty() ? "" : ", ") + plain(n);
  std::string out = cat(".TP\n\\fB", names, "\\fR");
  if (!o.positional && !o.value.empty()) out += cat(" \\fI", plain(o.value), "\\fR");
  out += "\n" + plain(o.help);
  if (o.required)
    out += " (required)";
  else if (!o.default_value.empty())
    out += cat(" (default: ", plain(o.default_value), ")");
  return out + "\n";
}

std::string command_text(const CommandEntry& c) {
  std::string out = cat(".SS \"onnxtrain ", c.name, "\"\n", plain(c.help), ".\n");
  for (const OptionEntry& o : c.options)
    if (!o.is_help()) out += option_text(o);
  return out + cat(".PP\nExamples:\n.PP\n.nf\n", plain(c.examples), "\n.fi\n");
}

constexpr const char* kAfter =
    ".SH EXIT STATUS\n0 done, 1 failed, 2 usage, 3 model, 4 data, 5 diverged, 6 check or diff "
    "found "
    "differences, 130 interrupted with a checkpoint saved.\n"
    ".SH ENVIRONMENT\n.TP\n\\fBONNXTRAIN_\\fIOPTION\\fR\nA default for an option of train, for "
    "example ONNXTRAIN_EPOCHS.\n"
    ".TP\n\\fBONNXTRAIN_PYTHON\\fR\nThe interpreter for commands that need the Python package.\n"
    ".TP\n\\fBNO_COLOR\\fR\nNo colours.\n"
    ".SH FILES\n.TP\n\\fIruns/MODEL\\-NNN/\\fR\nA run: model.onnx, checkpoints, metrics, settings, "
    "report.html.\n";

}  // namespace

std::string man_page(const std::vector<CommandEntry>& commands) {
  std::string out = cat(".TH ONNXTRAIN 1 \"\" \"onnxtrain ", version(),
                        "\" \"User Commands\"\n.SH NAME\nonnxtrain \\- trains ONNX models\n"
                        ".SH SYNOPSIS\n.B onnxtrain\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
                        ".SH DESCRIPTION\nMakes ordinary ONNX files trainable, trains them, and "
                        "writes ordinary ONNX files. \\fBonnxtrain \\fICOMMAND\\fB \\-\\-help\\fR "
                        "shows the options that are used often.\n.SH COMMANDS\n");
  for (const CommandEntry& c : commands) out += command_text(c);
  return out + kAfter;
}

}  // namespace onnxtrain::cli
