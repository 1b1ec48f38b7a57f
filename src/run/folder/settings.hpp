// Settings: a value and a source for every key, the only reader and writer of config.toml. Sources:
// flag, call (a function's argument), environment ONNXTRAIN_X, config (a --config file), run (the
// run that is resumed), file (what the model carries), default.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace onnxtrain::run {

class Settings {
 public:
  enum class Kind { kText, kNumber, kFlag };
  using Values = std::vector<std::string>;  // as they would be typed
  struct Key {
    std::string name;
    Kind kind = Kind::kText;
    bool many = false;     // a list
    std::string fallback;  // the default, as it would be typed
    // Takes values that a file or the environment gives; may refuse them. `from` is for messages.
    std::function<void(const Values&, const std::string& from)> apply;
    std::vector<std::string> other_names = {};  // "batch-size"
  };
  enum class Unknown { kRefused, kPassedOver };

  // In the order of config.toml.
  void add(Key key);
  // What a key that is not known may mean: its name, or "".
  void set_suggestion(std::function<std::string(const std::string&)> suggest) {
    suggest_ = std::move(suggest);
  }
  void set(const std::string& name, Values values, const std::string& source);
  void from_environment();
  // A toml file; `source` is how config.toml will name it. What was set before stays. An unknown
  // key is an error with a suggestion (OT0007), or passed over. `leave` are passed over, too.
  void from_file(const std::string& path, const std::string& source,
                 const std::set<std::string>& leave = {}, Unknown unknown = Unknown::kRefused);

  bool given(const std::string& name) const { return source_.count(name) != 0; }
  // Said for this run, not taken over from a run that is resumed.
  bool fresh(const std::string& name) const { return given(name) && source_.at(name) != "run"; }
  // Said for this run, and not what the run has that is resumed (from_file as "run").
  bool changes(const std::string& name) const;
  // Keys of what text_for_checkpoint wrote whose values are others in the run that is resumed, with
  // both values: somebody edited its config.toml.
  struct Edited {
    std::string name, now, before;
  };
  std::vector<Edited> edited_since(const std::string& text, const std::string& path) const;
  // The values of a key, or its default.
  Values values(const std::string& name) const;
  std::string value(const std::string& name) const;

  // The text of a value in config.toml, where it says more than what was typed.
  void replace(const std::string& name, const std::string& value) { shown_[name] = value; }
  void mark(const std::string& name, const std::string& source) { source_[name] = source; }
  // toml: one line per key, with the source as a comment.
  std::string text() const;
  // The same without sources and without what only concerns the look of a run or this machine: it
  // travels in checkpoints, in case config.toml is gone.
  std::string text_for_checkpoint() const;
  // What text_for_checkpoint wrote. path: for messages.
  void from_checkpoint(const std::string& text, const std::string& path,
                       const std::set<std::string>& leave);

 private:
  const Key* find(const std::string& name) const;
  std::string value_text(const Key& key) const;
  void take_table(const std::string& text, const std::string& path, const std::string& source,
                  const std::set<std::string>& leave, Unknown unknown);
  void take(const Key& key, const Values& values, const std::string& from,
            const std::string& source);
  std::vector<Key> keys_;
  std::map<std::string, Values> values_;
  std::map<std::string, std::string> source_;  // of what is not the default
  std::map<std::string, std::string> shown_;
  std::map<std::string, Values> of_run_;
  std::function<std::string(const std::string&)> suggest_;
};

// Settings that change nothing of what is learnt.
bool is_about_look(const std::string& key);

// Every key of a settings file with its value as the file writes it; empty when there is no file.
std::map<std::string, std::string> settings_in(const std::string& path);
// The same of a text; path: for messages.
std::map<std::string, std::string> settings_in_text(const std::string& text,
                                                    const std::string& path);
// The text of such a value.
std::string unquoted(const std::string& value);

}  // namespace onnxtrain::run
