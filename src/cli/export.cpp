// export: inference ONNX without any training part; or a training step as a plain model.
#include <cmath>
#include <cstdio>
#include <cstring>

#include <nlohmann/json.hpp>

#include "cli/common/commands.hpp"
#include "cli/export_step.hpp"
#include "cli/export_whole.hpp"
#include "cli/flags/output_file.hpp"
#include "cli/measure/random_feeds.hpp"
#include "convert/analysis/attribute_weights.hpp"
#include "convert/lower/fold_bn.hpp"
#include "onnx/onnx.hpp"
#include "run/folder/checkpoint.hpp"

namespace onnxtrain::cli {

namespace {

using Options = std::vector<const CLI::Option*>;

struct ExportFlags {
  std::string from, to, which = "best";
  bool verify = false, fold_bn = false, as_json = false;
  StepFlags step;
  WholeFlags whole;
  CLI::Option* wants_step = nullptr;
  Options of_step, of_whole;
};

// Largest difference of the outputs of two models on random values, relative to their size.
double difference(const Model& a, const Model& b) {
  Feeds feeds = random_feeds(a, 2);
  auto x = Session(std::make_shared<const Model>(a)).run(feeds);
  auto y = Session(std::make_shared<const Model>(b)).run(feeds);
  double worst = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    const Tensor* s = std::get_if<Tensor>(&x[k].second);
    const Tensor* t = std::get_if<Tensor>(&y[k].second);
    if (!s || !t || s->dtype() == DType::kString) continue;
    if (s->shape() != t->shape()) return INFINITY;
    std::vector<double> p = s->to_doubles(), q = t->to_doubles();
    double size = 1e-30, gap = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      if (std::isnan(p[i]) && std::isnan(q[i])) continue;
      size = std::max(size, std::fabs(p[i]));
      gap = std::isnan(p[i]) || std::isnan(q[i]) ? INFINITY : std::max(gap, std::fabs(p[i] - q[i]));
    }
    worst = std::max(worst, gap / size);
  }
  return worst;
}

// The file that was written must compute what the model in memory computes.
double verify(const Model& m, const ExportFlags& f) {
  Model back = load_model(f.to, all_ops());
  if (!back.training.empty())
    throw Error(ErrorKind::kFailed, "OT4301", cat("'", f.to, "' still holds training"));
  double gap = difference(m, back);
  // folding multiplies weights beforehand: float32 rounds elsewhere
  double allowed = f.fold_bn ? 1e-4 : 0;
  if (!(gap <= allowed))
    throw Error(ErrorKind::kFailed, "OT4301",
                cat("'", f.to, "' does not compute what was exported: relative difference ", gap));
  say("verified", cat("same results on random values, relative difference ", gap));
  return gap;
}

// An option of another kind of file would have no effect.
void refuse_unused(const ExportFlags& f) {
  const bool step = f.wants_step->count() > 0, whole = f.whole.wanted;
  auto given = [](const Options& options) {
    for (const CLI::Option* o : options)
      if (o->count() > 0) return o->get_name();
    return std::string();
  };
  if (const std::string name = given(f.of_whole); !whole && !name.empty())
    usage_error("OT1058", cat(name, " is of export --whole, which was not asked for"),
                cat("add --whole, or leave ", name, " out"));
  if (const std::string name = given(f.of_step); !step && !whole && !name.empty())
    usage_error("OT1058", cat(name, " is of export --step, which was not asked for"),
                cat("add --step, or leave ", name, " out"));
  if (f.fold_bn && (step || whole))
    usage_error("OT1058", "--fold-bn is for inference: a training keeps its BatchNormalization",
                "leave --fold-bn out");
}

int export_model(const ExportFlags& f) {
  check_ending(f.to, {".onnx"}, true);
  refuse_unused(f);
  run::Position ignored;
  // refuses a damaged checkpoint
  Model m = run::load_model_or_checkpoint(checkpoint_of(f.from, f.which), ignored);
  run::strip_checkpoint_metadata(m);
  if (f.wants_step->count() > 0 && f.whole.wanted)
    usage_error("OT1770", "--step and --whole are two files", "leave one of them out");
  nlohmann::ordered_json j{{"saved", f.to}};
  auto told = [&](int code) {
    if (f.as_json) std::printf("%s\n", j.dump().c_str());
    return code;
  };
  if (f.whole.wanted) return told(export_whole(m, f.whole, f.step, f.from, f.to));
  if (f.wants_step->count() > 0) return told(export_step(m, f.step, f.from, f.to));
  Model out = m;
  if (f.fold_bn) {
    int count = fold_batch_norms(out);
    say("folded", cat(count, count == 1 ? " BatchNormalization" : " BatchNormalizations"));
  }
  SaveOptions o;
  o.inference_only = true;
  save_model(with_attribute_weights(out, all_ops()), f.to, all_ops(), o);
  say("saved", f.to);
  if (f.verify) j["relative_difference"] = verify(m, f);
  return told(0);
}

}  // namespace

void add_export(Registry& r) {
  static ExportFlags f;
  CLI::App* c =
      r.add("export", "inference ONNX without any training part",
            "  onnxtrain export runs/cnn-001 -o cnn.onnx\n"
            "  onnxtrain export runs/cnn-001 -o cnn.onnx --which last --fold-bn --verify\n"
            "  onnxtrain export model.train.onnx --step -o step.onnx      a training step for any "
            "runtime\n"
            "  onnxtrain export model.train.onnx --whole --epochs 3 --batch 32 -o whole.onnx");
  c->add_option("RUN|MODEL", f.from, "a run folder, a checkpoint or a model")->required();
  c->add_option("-o,--output", f.to, "file to write")->required();
  c->add_option("--which", f.which, "best|last (of a run)")->check(CLI::IsMember({"best", "last"}));
  c->add_flag("--fold-bn", f.fold_bn, "multiply BatchNormalization into the layer before it");
  auto added = [&](auto add) {
    const size_t before = c->get_options().size();
    add();
    const std::vector<CLI::Option*> all = c->get_options();
    return Options(all.begin() + long(before), all.end());
  };
  f.of_step = added([&] { add_step_flags(c, f.step); });
  f.of_whole = added([&] { add_whole_flags(r, c, f.whole); });
  f.wants_step = c->get_option("--step");
  auto forget = [](Options& all, const CLI::Option* o) { std::erase(all, o); };
  forget(f.of_step, f.wants_step);
  forget(f.of_whole, c->get_option("--whole"));
  c->add_flag("--verify", f.verify, "read the file back and compare results");
  c->add_flag("--json", f.as_json, "machine-readable");
  r.on(c, [] { return export_model(f); });
}

}  // namespace onnxtrain::cli
