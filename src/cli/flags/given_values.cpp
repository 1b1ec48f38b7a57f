// Checks of typed values that hold for every command.
#include "cli/flags/given_values.hpp"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/error.hpp"
#include "core/shell.hpp"

namespace onnxtrain::cli {

namespace {

namespace fs = std::filesystem;

// Mostly a variable of the shell that is not set.
void refuse_empty(const CLI::Option& o, const std::string& value) {
  if (value.empty())
    usage_error("OT0003", cat(o.get_name(), " is empty"),
                "leave it out, or give it a value; a variable of the shell that is not set?");
}

// `--resume --epochs 4`: the next option was taken for the value.
void refuse_option(const CLI::App& command, const CLI::Option& o, const std::string& value) {
  if (!value.starts_with("--") || !o.get_name().starts_with("--")) return;
  const std::string name = value.substr(0, value.find('='));
  for (const CLI::Option* other : command.get_options())
    if (other->check_name(name))
      usage_error("OT0003", cat(o.get_name(), " has no value: ", value, " is the next option"),
                  cat("give it one, or leave ", o.get_name(), " out"));
}

void refuse_number(const CLI::Option& o, const std::string& value) {
  const std::string problem = number_problem(o, value);
  if (problem.empty()) return;
  const std::string usual = o.get_default_str();
  usage_error("OT0003", cat(o.get_name(), " ", value, ": ", problem),
              usual.empty() || usual == "0" || usual == "[]"
                  ? cat("leave ", o.get_name(), " out, or give a smaller number")
                  : cat("for example  ", o.get_name(), " ", usual));
}

bool is_output(const CLI::Option& o) {
  return o.check_name("--output") || o.get_name() == "OUT" || o.check_name("--trace");
}

bool is_input(const CLI::Option& o) {
  const std::string name = o.get_name();
  return !name.starts_with("-") || o.check_name("--data") || o.check_name("--inputs");
}

// What was there would be lost, although only a copy was asked for.
void refuse_overwriting(const CLI::App& command) {
  std::error_code ec;
  for (const CLI::Option* out : command.get_options()) {
    if (!is_output(*out)) continue;
    for (const std::string& to : out->results())
      for (const CLI::Option* in : command.get_options()) {
        if (in == out || is_output(*in) || !is_input(*in)) continue;
        for (const std::string& from : in->results())
          if (fs::is_regular_file(from, ec) && fs::equivalent(from, to, ec)) {
            const fs::path path(to);
            const std::string other =
                (path.parent_path() / (path.stem().string() + "-new" + path.extension().string()))
                    .string();
            usage_error("OT0012",
                        cat(out->get_name(), " ", to, " would overwrite ", in->get_name(), " ",
                            from, ", which is read here"),
                        out->get_name().starts_with("-")
                            ? cat(out->get_name(), " ", shell_word(other))
                            : cat("another name:  ", shell_word(other)));
          }
      }
  }
}

// A value that an option takes: its default, or one of other use when that is none or 0.
std::string example_value(const CLI::Option& o) {
  static const std::map<std::string, std::string> known = {
      {"--lr", "1e-3"},  {"--weight-decay", "0.01"}, {"--momentum", "0.9"}, {"--hidden", "64,32"},
      {"--batch", "32"}, {"--ignore-index", "-100"}, {"--threads", "2"}};
  const std::string usual = o.get_default_str(), name = o.get_name();
  const bool none = usual.empty() || usual == "[]" || usual == "0";
  if (const auto it = known.find(name); none && it != known.end()) return it->second;
  return usual == "[]" ? std::string() : usual == "0" ? "1" : usual;
}

}  // namespace

const CLI::Option* option_of(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* o : command.get_options())
    if (o->check_name(name)) return o;
  return nullptr;
}

std::string in_our_words(const CLI::App& command, const std::string& said, std::string& hint) {
  const std::string often = ": At Most 1 required but received ", bad = "Could not convert: ";
  if (const size_t at = said.find(often); at != std::string::npos) {
    hint = cat("give ", said.substr(0, at), " once");
    return cat(said.substr(0, at), " was given ", said.substr(at + often.size()),
               " times; it takes one value");
  }
  std::string name = said.substr(0, said.find(':')), message = said;
  // the parser prints the largest double as the end of "greater than 0"
  if (const size_t at = said.find(" not in range 0.000000 to 17976931"); at != std::string::npos)
    message = said.substr(0, at) + " is not a positive number";
  if (said.starts_with(bad)) {
    const size_t equals = said.find(" = ");
    name = said.substr(bad.size(), equals - bad.size());
    const std::string value = equals == std::string::npos ? "" : said.substr(equals + 3);
    message = cat(name, " does not take '", value, "'");
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (!value.empty() && *end == '\0' && number >= 1 && number < 1e15) {
      message += ": it takes a whole number";
      hint = cat(name, " ", int64_t(number));
      return message;
    }
  }
  const CLI::Option* o = name.starts_with("-") ? option_of(command, name) : nullptr;
  if (o && !example_value(*o).empty() && message != cat(name, " is required"))
    hint = cat("for example  ", name, " ", example_value(*o), "   (onnxtrain ", command.get_name(),
               " --help)");
  return message;
}

std::string number_problem(const CLI::Option& o, const std::string& value) {
  const std::string type = o.get_type_name();
  const bool whole = type.starts_with("INT") || type.starts_with("UINT");
  if (!whole && !type.starts_with("FLOAT")) return {};
  char* end = nullptr;
  errno = 0;
  if (whole) {
    if (type.starts_with("UINT") && !value.starts_with("-"))
      std::strtoull(value.c_str(), &end, 10);
    else
      std::strtoll(value.c_str(), &end, 10);
    return errno == ERANGE ? "larger than any number that it takes" : std::string();
  }
  const double v = std::strtod(value.c_str(), &end);
  if (*end != '\0') return {};
  return std::isfinite(v) ? std::string() : "it takes a finite number";
}

void check_given(const CLI::App& command) {
  for (const CLI::Option* o : command.get_options()) {
    if (o->get_items_expected_max() == 0) continue;
    for (const std::string& value : o->results()) {
      refuse_empty(*o, value);
      refuse_option(command, *o, value);
      refuse_number(*o, value);
    }
  }
  refuse_overwriting(command);
}

}  // namespace onnxtrain::cli
