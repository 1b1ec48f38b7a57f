// The C API's new networks.
#include <nlohmann/json.hpp>

#include "api/handles.hpp"
#include "run/new/model.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;
using nlohmann::json;

namespace {

// Keeps what is told.
class Listener final : public run::Observer {
 public:
  void on_note(const std::string& label, const std::string& text) override {
    notes.push_back({label, text});
  }
  json notes = json::array();
};

std::vector<std::string> name_list(const json& v) {
  if (v.is_string()) return {v.get<std::string>()};
  return v.get<std::vector<std::string>>();
}

void set_option(const std::string& key, const json& v, run::NewRequest& q) {
  const std::map<std::string, std::string*> texts = {{"data", &q.data},
                                                     {"target", &q.target},
                                                     {"drop", &q.drop},
                                                     {"encoding", &q.encoding},
                                                     {"separator", &q.separator},
                                                     {"images", &q.images},
                                                     {"task", &q.task},
                                                     {"x", &q.x},
                                                     {"y", &q.y},
                                                     {"impute", &q.preprocess.impute},
                                                     {"scale", &q.preprocess.scale},
                                                     {"resize", &q.preprocess.resize}};
  if (const auto it = texts.find(key); it != texts.end())
    *it->second = v.get<std::string>();
  else if (key == "layout")
    q.nhwc = v == "nhwc";
  else if (key == "skip_bad")
    q.skip_bad = v.get<bool>();
  else if (key == "one_hot")
    q.preprocess.one_hot = name_list(v);
  else if (key == "embed")
    q.preprocess.embed = name_list(v);
  else if (key == "image_size")
    q.image_size = v.get<std::vector<int64_t>>();
  else if (key == "hidden")
    q.hidden = v.get<std::vector<int64_t>>();
  else if (key == "dropout")
    q.dropout = v.get<double>();
  else if (key == "seed")
    q.seed = v.get<uint64_t>();
  else if (key == "text")
    q.text.column = v.get<std::string>();
  else if (key == "tokenizer")
    q.text.tokenizer = v.get<std::string>();
  else if (key == "max_length")
    q.text.max_length = v.get<int64_t>();
  else
    usage_error("OT1152", cat("a new model has no option '", key, "'"),
                "docs/tables.md has the options");
}

}  // namespace

ot_status ot_model_new(const char* kind, const ot_dataset* arrays, const char* options,
                       ot_model** out, ot_text** notes) {
  return guarded({{"kind", kind}, {"out", out}}, [&] {
    run::NewRequest q;
    q.kind = kind;
    const json given = json::parse(options ? options : "{}");
    for (const auto& [key, value] : given.items()) {
      try {
        set_option(key, value, q);
      } catch (const json::exception&) {
        usage_error("OT1152", cat("option '", key, "' of a new model cannot be ", value.dump()),
                    "docs/tables.md has the options");
      }
    }
    if (q.task != "auto" && q.task != "classes" && q.task != "numbers")
      usage_error("OT1152", cat("task '", q.task, "' is not known"), "--task classes or numbers");
    if (const std::string& r = q.preprocess.resize; r != "stretch" && r != "crop" && r != "pad")
      usage_error("OT1152", cat("resize '", r, "' is not known"), "--resize stretch, crop or pad");
    Listener listener;
    *out = new ot_model{
        std::make_shared<const Model>(run::new_model(q, arrays ? &arrays->d : nullptr, listener))};
    if (notes) *notes = new ot_text{listener.notes.dump()};
  });
}
