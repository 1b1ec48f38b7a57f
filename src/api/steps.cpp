// The C API: training steps for other runtimes.
#include <nlohmann/json.hpp>

#include "api/handles.hpp"
#include "convert/portable/evaluation.hpp"
#include "convert/portable/manifest.hpp"
#include "convert/whole/whole.hpp"
#include "onnx/onnx.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;

ot_status ot_make_step(const ot_model* m, int which, const char* options, ot_model** step,
                       ot_text** manifest) {
  return guarded({{"m", m}, {"step", step}, {"manifest", manifest}}, [&] {
    const StepOptions o = step_options_from_json(options ? options : "");
    std::vector<StepModel> made;
    made.push_back(which == OT_EVALUATION ? portable::make_evaluation(*m->m, o, all_ops())
                                          : make_step(*m->m, which, o, all_ops()));
    auto text = std::make_unique<ot_text>(
        ot_text{portable::manifest(made, {"step.onnx"}, *m->m, o, "step.state.safetensors")});
    *step = new ot_model{std::make_shared<const Model>(std::move(made[0].model))};
    *manifest = text.release();
  });
}

ot_status ot_export_step(const ot_model* m, int which, const char* options, const char* path,
                         ot_text** report) {
  return guarded({{"m", m}, {"path", path}, {"report", report}}, [&] {
    const StepOptions o = step_options_from_json(options ? options : "");
    const WrittenStep w = write_step(*m->m, which, o, path, all_ops());
    nlohmann::ordered_json j;
    j["files"] = w.files;
    j["warnings"] = w.warnings;
    j["sections"] = nlohmann::ordered_json::array();
    for (const StepModel& s : w.steps)
      j["sections"].push_back({{"section", s.section},
                               {"nodes_lowered", s.nodes_before},
                               {"nodes", s.model.main.nodes.size()}});
    *report = new ot_text{j.dump()};
  });
}

ot_status ot_make_whole(const ot_model* m, const char* options, ot_model** whole,
                        ot_text** manifest) {
  return guarded({{"m", m}, {"whole", whole}, {"manifest", manifest}}, [&] {
    const WholeOptions o = whole_options_from_json(options ? options : "");
    WholeModel w = make_whole(*m->m, o, all_ops());
    auto text = std::make_unique<ot_text>(ot_text{whole_manifest(w, o)});
    w.model.metadata["onnxtrain.whole_manifest"] = text->data;
    *whole = new ot_model{std::make_shared<const Model>(std::move(w.model))};
    *manifest = text.release();
  });
}

ot_status ot_export_whole(const ot_model* m, const char* options, const char* path,
                          ot_text** report) {
  return guarded({{"m", m}, {"path", path}, {"report", report}}, [&] {
    const WholeOptions o = whole_options_from_json(options ? options : "");
    const WholeModel w = write_whole(*m->m, o, path, all_ops());
    nlohmann::ordered_json j = nlohmann::ordered_json::parse(whole_manifest(w, o));
    j["file"] = path;
    j["warnings"] = w.warnings;
    j["step_nodes"] = w.step_nodes;
    *report = new ot_text{j.dump()};
  });
}
