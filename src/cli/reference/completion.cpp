// completion: scripts that complete commands and options, from the table of commands
// (reference.hpp).
#include <cstdio>

#include "cli/reference/reference.hpp"
#include "core/error.hpp"

namespace onnxtrain::cli {

namespace {

using Commands = std::vector<CommandEntry>;

std::string options_of(const CommandEntry& c) {
  std::string out;
  for (const OptionEntry& o : c.options)
    for (const std::string& name : o.long_names()) out += (out.empty() ? "" : " ") + name;
  return out;
}

std::string bash(const Commands& commands) {
  std::string names, cases;
  for (const CommandEntry& c : commands) {
    names += (names.empty() ? "" : " ") + c.name;
    cases += "    " + c.name + ") words=\"" + options_of(c) + "\" ;;\n";
  }
  return "_onnxtrain() {\n"
         "  local word=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\"\n"
         "  if [[ $COMP_CWORD -eq 1 ]]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         names +
         "\" -- \"$word\")); return\n"
         "  fi\n"
         "  if [[ $word != -* ]]; then COMPREPLY=($(compgen -f -- \"$word\")); return; fi\n"
         "  case \"${COMP_WORDS[1]}\" in\n" +
         cases +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o filenames -F _onnxtrain onnxtrain\n";
}

std::string shell_quoted(const std::string& s) {
  std::string out = "'";
  for (char c : s) out += c == '\'' ? std::string("’") : std::string(1, c);
  return out + "'";
}

std::string zsh(const Commands& commands) {
  std::string names, cases;
  for (const CommandEntry& c : commands) {
    names += "    " + shell_quoted(c.name + ":" + c.help) + "\n";
    cases += "    " + c.name + ") compadd -- " + options_of(c) + " ;;\n";
  }
  return "#compdef onnxtrain\n"
         "_onnxtrain() {\n"
         "  local -a commands\n  commands=(\n" +
         names +
         "  )\n"
         "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
         "  if [[ $words[CURRENT] != -* ]]; then _files; return; fi\n"
         "  case $words[2] in\n" +
         cases +
         "  esac\n"
         "}\n"
         "compdef _onnxtrain onnxtrain\n";
}

std::string fish(const Commands& commands) {
  std::string out;
  for (const CommandEntry& c : commands) {
    out += "complete -c onnxtrain -n __fish_use_subcommand -a " + c.name + " -d " +
           shell_quoted(c.help) + "\n";
    for (const OptionEntry& o : c.options)
      for (const std::string& name : o.long_names())
        out += "complete -c onnxtrain -n '__fish_seen_subcommand_from " + c.name + "' -l " +
               name.substr(2) + " -d " + shell_quoted(o.help) + "\n";
  }
  return out;
}

}  // namespace

void add_completion(Registry& r) {
  static std::string shell;
  CLI::App* c = r.add("completion", "a script that completes commands and options",
                      "  source <(onnxtrain completion bash)\n"
                      "  onnxtrain completion fish > ~/.config/fish/completions/onnxtrain.fish");
  c->add_option("SHELL", shell, "bash|zsh|fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  CLI::App* app = &r.app();
  r.on(c, [app] {
    const Commands all = command_table(*app);
    std::string text = shell == "bash" ? bash(all) : shell == "zsh" ? zsh(all) : fish(all);
    std::printf("%s", text.c_str());
    return 0;
  });
}

}  // namespace onnxtrain::cli
