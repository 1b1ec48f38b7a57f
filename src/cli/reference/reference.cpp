// `reference` (not listed in the help): every command and option, as Markdown for docs/cli.md, as
// JSON or as a man page.
#include "cli/reference/reference.hpp"

#include <cctype>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/reference/man_page.hpp"
#include "core/error.hpp"

namespace onnxtrain::cli {

namespace {

constexpr const char* kExamplesHeading = "Examples:\n";
constexpr const char* kReference = "reference";  // this command: for tools, in no list

// "TEXT:{torch,onnx}" -> "{torch,onnx}", "INT:POSITIVE" -> "INT"
std::string taken_value(const CLI::Option& o) {
  if (o.get_items_expected_max() == 0) return {};
  const std::string type = o.get_type_name();
  if (const size_t choice = type.find(":{"); choice != std::string::npos)
    return type.substr(choice + 1);
  return type.substr(0, type.find(':'));
}

OptionEntry option_entry(const CLI::Option& o) {
  OptionEntry e;
  e.group = o.get_group();
  e.positional = o.nonpositional() ? false : o.get_positional();
  if (e.positional) e.names = {o.get_name(true)};
  for (const std::string& n : o.get_snames()) e.names.push_back("-" + n);
  for (const std::string& n : o.get_lnames()) e.names.push_back("--" + n);
  e.value = taken_value(o);
  e.help = o.get_description();
  e.default_value = o.get_default_str() == "[]" ? "" : o.get_default_str();  // an empty list
  e.required = o.get_required();
  e.repeated = o.get_items_expected_max() > 1;
  return e;
}

// In a cell of a Markdown table.
std::string table_cell(const std::string& s) {
  std::string out;
  for (char c : s) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string option_row(const OptionEntry& o) {
  std::string names;
  for (const std::string& n : o.names) names += cat(names.empty() ? "`" : ", `", n, "`");
  if (!o.positional && !o.value.empty()) names += " " + o.value;
  if (o.repeated) names += " ...";
  const std::string shown = o.required                ? "required"
                            : o.default_value.empty() ? ""
                                                      : cat("`", o.default_value, "`");
  return cat("| ", table_cell(names), " | ", table_cell(o.help), " | ", table_cell(shown), " |\n");
}

std::string markdown_text(const std::vector<CommandEntry>& commands) {
  std::string out = "| command | what it does |\n|---|---|\n";
  for (const CommandEntry& c : commands)
    out += cat("| [`", c.name, "`](#", c.name, ") | ", table_cell(c.help), " |\n");
  for (const CommandEntry& c : commands) {
    std::string help = c.help;
    help[0] = char(std::toupper(static_cast<unsigned char>(help[0])));
    out += cat("\n### ", c.name, "\n\n", help, ".\n\n```text\n", c.examples, "\n```\n\n");
    std::string rows;
    for (const OptionEntry& o : c.options)
      if (!o.is_help()) rows += option_row(o);
    if (!rows.empty()) out += "| option | meaning | default |\n|---|---|---|\n" + rows;
  }
  return out;
}

std::string json_text(const std::vector<CommandEntry>& commands) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const CommandEntry& c : commands) {
    nlohmann::ordered_json options = nlohmann::ordered_json::array();
    for (const OptionEntry& o : c.options)
      options.push_back({{"names", o.names},
                         {"value", o.value},
                         {"help", o.help},
                         {"default", o.default_value},
                         {"group", o.group},
                         {"positional", o.positional},
                         {"required", o.required},
                         {"repeated", o.repeated}});
    list.push_back(
        {{"command", c.name}, {"help", c.help}, {"examples", c.examples}, {"options", options}});
  }
  return list.dump(2) + "\n";
}

}  // namespace

std::vector<std::string> OptionEntry::long_names() const {
  std::vector<std::string> out;
  for (const std::string& n : names)
    if (n.starts_with("--")) out.push_back(n);
  return out;
}

bool OptionEntry::is_help() const { return names.back().starts_with("--help"); }

std::vector<CommandEntry> command_table(const CLI::App& app) {
  std::vector<CommandEntry> out;
  for (const CLI::App* c : app.get_subcommands({})) {
    if (c->get_name() == kReference) continue;
    CommandEntry e{c->get_name(), c->get_description(), c->get_footer(), {}};
    if (e.examples.starts_with(kExamplesHeading))
      e.examples.erase(0, std::string(kExamplesHeading).size());
    for (const bool positional : {true, false})
      for (const CLI::Option* o : c->get_options())
        if (OptionEntry entry = option_entry(*o); entry.positional == positional)
          e.options.push_back(std::move(entry));
    out.push_back(std::move(e));
  }
  return out;
}

void add_reference(Registry& r) {
  static std::string form = "markdown";
  CLI::App* c = r.add(kReference, "every command and option, for documents and tools",
                      "  onnxtrain reference json");
  c->group("");
  c->add_option("FORM", form, "markdown|json|man")
      ->check(CLI::IsMember({"markdown", "json", "man"}));
  CLI::App* app = &r.app();
  r.on(c, [app] {
    const std::vector<CommandEntry> commands = command_table(*app);
    const std::string text = form == "json"  ? json_text(commands)
                             : form == "man" ? man_page(commands)
                                             : markdown_text(commands);
    std::printf("%s", text.c_str());
    return 0;
  });
}

}  // namespace onnxtrain::cli
