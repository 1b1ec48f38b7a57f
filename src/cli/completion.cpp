// completion: scripts that complete commands and options, made from the parser itself.
#include <cstdio>

#include "cli/commands.hpp"
#include "core/error.hpp"

namespace onnxtrain::cli {

namespace {

std::string options_of(const CLI::App* c) {
  std::string out;
  for (const CLI::Option* o : c->get_options())
    for (const std::string& name : o->get_lnames()) out += (out.empty() ? "--" : " --") + name;
  return out;
}

std::string bash(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* c : app.get_subcommands({})) {
    names += (names.empty() ? "" : " ") + c->get_name();
    cases += "    " + c->get_name() + ") words=\"" + options_of(c) + "\" ;;\n";
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

std::string shell_quoted(std::string s) {
  std::string out = "'";
  for (char c : s) out += c == '\'' ? std::string("’") : std::string(1, c);
  return out + "'";
}

std::string zsh(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* c : app.get_subcommands({})) {
    names += "    " + shell_quoted(c->get_name() + ":" + c->get_description()) + "\n";
    cases += "    " + c->get_name() + ") compadd -- " + options_of(c) + " ;;\n";
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

std::string fish(const CLI::App& app) {
  std::string out;
  for (const CLI::App* c : app.get_subcommands({})) {
    out += "complete -c onnxtrain -n __fish_use_subcommand -a " + c->get_name() + " -d " +
           shell_quoted(c->get_description()) + "\n";
    for (const CLI::Option* o : c->get_options())
      for (const std::string& name : o->get_lnames())
        out += "complete -c onnxtrain -n '__fish_seen_subcommand_from " + c->get_name() + "' -l " +
               name + " -d " + shell_quoted(o->get_description()) + "\n";
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
    std::string text = shell == "bash" ? bash(*app) : shell == "zsh" ? zsh(*app) : fish(*app);
    std::printf("%s", text.c_str());
    return 0;
  });
}

}  // namespace onnxtrain::cli
