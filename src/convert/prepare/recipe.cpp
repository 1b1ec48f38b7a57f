// JSON -> Recipe. Strict: an unknown key or a value of another kind is an error that says what was
// meant or expected.
#include <algorithm>
#include <cmath>
#include <functional>

#include <nlohmann/json.hpp>

#include "convert/prepare.hpp"
#include "convert/step/names.hpp"

namespace onnxtrain {

namespace {

using Json = nlohmann::json;
using FieldReader = std::function<void(const Json&)>;
using Fields = std::map<std::string, FieldReader>;

[[noreturn]] void wrong_kind(const std::string& where, const char* want, const Json& j) {
  usage_error("OT1231", cat("'", where, "' of the recipe must be ", want, ", not ", j.dump()),
              "the keys and their types are in docs/recipe.md");
}

void read_object(const Json& j, const std::string& where, const Fields& fields) {
  if (!j.is_object()) wrong_kind(where, "an object", j);
  for (const auto& [key, value] : j.items()) {
    auto it = fields.find(key);
    if (it == fields.end()) {
      std::vector<std::string> known;
      for (const auto& f : fields) known.push_back(f.first);
      usage_error(
          "OT1230",
          cat("the recipe has no key '", key, "'", where == "recipe" ? "" : " in '" + where + "'"),
          suggestion(key, known));
    }
    if (!value.is_null()) it->second(value);
  }
}

FieldReader number(std::string where, std::function<void(double)> set) {
  return [where = std::move(where), set = std::move(set)](const Json& j) {
    if (!j.is_number()) wrong_kind(where, "a number", j);
    set(j.get<double>());
  };
}
FieldReader integer(std::string where, std::function<void(int64_t)> set) {
  return [where = std::move(where), set = std::move(set)](const Json& j) {
    bool whole =
        j.is_number_integer() || (j.is_number() && j.get<double>() == std::floor(j.get<double>()));
    if (!whole) wrong_kind(where, "a whole number", j);
    set(j.is_number_integer() ? j.get<int64_t>() : int64_t(j.get<double>()));
  };
}
FieldReader boolean(std::string where, bool& to) {
  return [where = std::move(where), &to](const Json& j) {
    if (!j.is_boolean()) wrong_kind(where, "true or false", j);
    to = j.get<bool>();
  };
}
FieldReader text(std::string where, std::string& to) {
  return [where = std::move(where), &to](const Json& j) {
    if (!j.is_string()) wrong_kind(where, "a string", j);
    to = j.get<std::string>();
  };
}
FieldReader real(std::string where, double& to) {
  return number(std::move(where), [&to](double v) { to = v; });
}
FieldReader real(std::string where, std::optional<double>& to) {
  return number(std::move(where), [&to](double v) { to = v; });
}
// A list of strings, or one string.
FieldReader texts(std::string where, std::vector<std::string>& to) {
  return [where = std::move(where), &to](const Json& j) {
    to.clear();
    if (j.is_string()) {
      to.push_back(j.get<std::string>());
      return;
    }
    if (!j.is_array()) wrong_kind(where, "a list of strings", j);
    for (const Json& x : j) {
      if (!x.is_string()) wrong_kind(where, "a list of strings", j);
      to.push_back(x.get<std::string>());
    }
  };
}

LossTerm read_loss(const Json& j) {
  LossTerm t;
  if (j.is_string()) {
    t.kind = j.get<std::string>();
    return t;
  }
  read_object(j, "losses",
              {
                  {"kind", text("kind", t.kind)},
                  {"output", text("output", t.output)},
                  {"label", text("label", t.label)},
                  {"weight", real("weight", t.weight)},
                  {"reduction", text("reduction", t.reduction)},
                  {"class_weights",
                   [&](const Json& v) {
                     if (!v.is_array()) wrong_kind("class_weights", "a list of numbers", v);
                     for (const Json& x : v) {
                       if (!x.is_number()) wrong_kind("class_weights", "a list of numbers", v);
                       t.class_weights.push_back(x.get<float>());
                     }
                   }},
                  {"ignore_index", integer("ignore_index", [&](int64_t v) { t.ignore_index = v; })},
                  {"label_smoothing", real("label_smoothing", t.label_smoothing)},
                  {"delta", real("delta", t.delta)},
              });
  return t;
}

ParameterOverride read_override(const Json& j) {
  ParameterOverride o;
  read_object(j, "overrides",
              {
                  {"glob", text("glob", o.glob)},
                  {"weight_decay", real("weight_decay", o.weight_decay)},
                  {"lr_scale", real("lr_scale", o.lr_scale)},
              });
  if (o.glob.empty())
    usage_error("OT1231", "an entry of 'overrides' needs a 'glob' over parameter names",
                "for example {\"glob\": \"head.*\", \"lr\": 0.01}");
  return o;
}

// A list of entries, or {glob: {...}}.
void read_overrides(const Json& j, std::vector<ParameterOverride>& to) {
  if (j.is_object()) {
    for (const auto& [glob, x] : j.items()) {
      Json entry = x;
      entry["glob"] = glob;
      to.push_back(read_override(entry));
    }
    return;
  }
  if (!j.is_array()) wrong_kind("overrides", "a list", j);
  for (const Json& x : j) to.push_back(read_override(x));
}

FieldReader setting(const OptimizerSetting& x, OptimizerSpec& s) {
  const std::string name = x.name;
  if (x.range != SettingRange::kFlag)
    return number(name, [&s, name](double v) { s.settings[name] = v; });
  return [&s, name](const Json& v) {
    if (!v.is_boolean()) wrong_kind(name, "true or false", v);
    s.settings[name] = v.get<bool>() ? 1 : 0;
  };
}

OptimizerSpec read_optimizer(const Json& j) {
  OptimizerSpec s;
  if (j.is_string()) {
    s.kind = j.get<std::string>();
    return s;
  }
  Fields fields = {
      {"kind", text("kind", s.kind)},
      {"lr", real("lr", s.lr)},
      {"weight_decay", real("weight_decay", s.weight_decay)},
      {"style", text("style", s.style)},
      {"no_decay_on_bias_and_norm",
       boolean("no_decay_on_bias_and_norm", s.no_decay_on_bias_and_norm)},
      {"attributes",
       [&](const Json& v) {
         if (!v.is_object()) wrong_kind("attributes", "an object of numbers", v);
         for (const auto& [key, x] : v.items()) {
           if (!x.is_number()) wrong_kind("attributes." + key, "a number", x);
           s.attributes[key] = x.get<double>();
         }
       }},
      {"t0", integer("t0", [&](int64_t v) { s.t0 = v; })},
      {"overrides", [&](const Json& v) { read_overrides(v, s.overrides); }},
  };
  // pairs of PyTorch's arguments
  const auto pair = [&s](const char* key, const char* first, const char* second) -> FieldReader {
    return [=, &s](const Json& v) {
      if (!v.is_array() || v.size() != 2 || !v[0].is_number() || !v[1].is_number())
        wrong_kind(key, "two numbers", v);
      s.settings[first] = v[0].get<double>();
      s.settings[second] = v[1].get<double>();
    };
  };
  fields["betas"] = pair("betas", "beta1", "beta2");
  fields["etas"] = pair("etas", "eta_minus", "eta_plus");
  fields["step_sizes"] = pair("step_sizes", "step_min", "step_max");
  for (const Optimizer* o : all_ops().optimizers())
    for (const OptimizerSetting& x : o->settings) fields.emplace(x.name, setting(x, s));
  read_object(j, "optimizer", fields);
  return s;
}

ScheduleSpec read_schedule(const Json& j) {
  ScheduleSpec s;
  if (j.is_string()) {
    s.kind = j.get<std::string>();
    return s;
  }
  Fields fields = {
      {"kind", text("kind", s.kind)},
      {"milestones",
       [&](const Json& v) {
         if (!v.is_array()) wrong_kind("milestones", "a list of steps", v);
         for (const Json& x : v) {
           if (!x.is_number_integer()) wrong_kind("milestones", "a list of steps", v);
           s.milestones.push_back(x.get<int64_t>());
         }
       }},
  };
  Fields numbers;
  for (const std::string& key : schedule_numbers())
    numbers[key] = number(key, [&s, key](double v) { s.numbers[key] = v; });
  fields["numbers"] = [&](const Json& v) { read_object(v, "schedule.numbers", numbers); };
  fields.insert(numbers.begin(), numbers.end());  // {"kind": "step", "step_size": 30}
  read_object(j, "schedule", fields);
  return s;
}

}  // namespace

Recipe recipe_from_json(const std::string& json) {
  Json j = Json::parse(json.empty() ? "{}" : json, nullptr, false);
  if (j.is_discarded())
    usage_error("OT1231", "the recipe is not valid JSON", "docs/recipe.md has an example");
  Recipe r;
  FieldReader losses = [&](const Json& v) {
    r.losses.clear();
    if (!v.is_array())
      r.losses.push_back(read_loss(v));
    else
      for (const Json& x : v) r.losses.push_back(read_loss(x));
  };
  FieldReader dims = [&](const Json& v) {
    if (!v.is_object()) wrong_kind("dims", "an object of sizes", v);
    for (const auto& [name, x] : v.items()) {
      const Json list = x.is_array() ? x : Json::array({x});
      for (const Json& n : list) {
        if (!n.is_number_integer() || n.get<int64_t>() < 1) wrong_kind("dims", "a size", n);
        r.dims[name].push_back(n.get<int64_t>());
      }
    }
  };
  // how bn_variance was spelled before: true is "torch", false is "onnx"
  FieldReader old_variance = [&](const Json& v) {
    bool unbiased = true;
    boolean("unbiased_batch_variance", unbiased)(v);
    const std::string meant = unbiased ? "torch" : "onnx";
    if (auto it = j.find("bn_variance"); it != j.end() && !it->is_null() && *it != meant)
      usage_error("OT1231",
                  "the recipe has bn_variance and unbiased_batch_variance, and they differ",
                  "remove unbiased_batch_variance, the older of the two");
    r.bn_variance = meant;
  };
  read_object(j, "recipe",
              {
                  {"losses", losses},
                  {"loss", losses},
                  {"optimizer", [&](const Json& v) { r.optimizer = read_optimizer(v); }},
                  {"schedule", [&](const Json& v) { r.schedule = read_schedule(v); }},
                  {"freeze", texts("freeze", r.freeze)},
                  {"only", texts("only", r.only)},
                  {"clip_norm", real("clip_norm", r.clip_norm)},
                  {"clip_value", real("clip_value", r.clip_value)},
                  {"accumulate", integer("accumulate", [&](int64_t v) { r.accumulate = int(v); })},
                  {"mode", text("mode", r.mode)},
                  {"append", boolean("append", r.append)},
                  {"lowered", boolean("lowered", r.lowered)},
                  {"batch", integer("batch", [&](int64_t v) { r.batch = v; })},
                  {"dims", dims},
                  {"reset", boolean("reset", r.reset)},
                  {"strict", boolean("strict", r.strict)},
                  {"seed", integer("seed", [&](int64_t v) { r.seed = uint64_t(v); })},
                  {"bn_variance", text("bn_variance", r.bn_variance)},
                  {"unbiased_batch_variance", old_variance},
                  {"augment", text("augment", r.augment)},
              });
  check_recipe(r);
  return r;
}

}  // namespace onnxtrain
