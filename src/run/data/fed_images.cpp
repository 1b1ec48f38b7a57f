// Images as a model takes them.
#include <algorithm>

#include "convert/preprocess/image_input.hpp"
#include "engine/training.hpp"
#include "run/data/feeds.hpp"

namespace onnxtrain::run {

bool takes_images(const Model& m, const OpenOptions& o) {
  const std::vector<std::string> names = m.input_names();
  if (names.size() != 1) return false;
  const TypeInfo& t = m.main.value(m.main.find(names[0])).type;
  return o.x_shape.size() >= 2 || (t.is_tensor() && t.shape && t.shape->size() == 4);
}

void follow_image_rule(const Model& m, OpenOptions& o) {
  const std::optional<ImageRule> rule = image_rule(m.metadata);
  const std::vector<std::string> names = m.input_names();
  if (!rule || names.empty()) return;
  const TypeInfo& t = m.main.value(m.main.find(names[0])).type;
  if (!t.is_tensor() || !t.shape || t.shape->size() != 4 || !(*t.shape)[1].known()) return;
  o.x_shape = {(*t.shape)[1].value, rule->height, rule->width};
  o.images.resize = rule->resize;
  o.images.numbers = rule->numbers;
}

namespace {

// The input whose images the graph resizes, where what resizing gives is fed as it is; "" if none.
std::string image_of_numbers(const Model& m) {
  const std::optional<ImageRule> rule = image_rule(m.metadata);
  const std::vector<std::string> names = m.input_names();
  if (!rule || !rule->numbers || names.empty()) return {};
  const TypeInfo& t = m.main.value(m.main.find(names[0])).type;
  return t.is_tensor() && t.elem == DType::kUint8 ? names[0] : std::string();
}

}  // namespace

std::vector<ValueDef> fed_inputs(const Model& m) {
  std::vector<ValueDef> inputs = training_inputs(m);
  const std::string image = image_of_numbers(m);
  for (ValueDef& d : inputs)
    if (d.name == image) d.type.elem = DType::kFloat;
  return inputs;
}

void accept_fed(Training& t) {
  if (const std::string image = image_of_numbers(t.source()); !image.empty())
    t.accept(image, DType::kFloat);
}

Model as_fed(Model m) {
  const std::string image = image_of_numbers(m);
  if (image.empty()) return m;
  auto change = [&](Graph& g) {
    for (ValueId v : g.inputs)
      if (g.value_name(v) == image) g.value(v).type.elem = DType::kFloat;
  };
  change(m.edit_main());
  for (TrainingStep& s : m.training) change(s.edit_algorithm());
  return m;
}

}  // namespace onnxtrain::run
