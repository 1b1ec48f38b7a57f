// Flags -> datasets.
#include "cli/data_flags.hpp"

namespace onnxtrain::cli {

void DataFlags::add_to(CLI::App* c, bool required) {
  const char* g = "Data";
  auto* o = c->add_option("--data", data,
                          "npy, npz, safetensors, idx, csv file, a folder, or synthetic:...")
                ->group(g);
  if (required) o->required();
  c->add_option("--target", target, "csv: the target column")->group(g);
  c->add_option("--map", map, "INPUT=KEY: which array feeds which input")->group(g);
  c->add_option("--scale", scale, "auto|none|MEAN,STD")->group(g);
  c->add_option("--layout", layout, "nchw|nhwc: how images lie in the data")
      ->check(CLI::IsMember({"nchw", "nhwc"}))
      ->group(g);
  c->add_option("--label-offset", label_offset, "added to every class label")->group(g);
}

FeedOptions DataFlags::feed_options() const {
  FeedOptions o;
  for (const std::string& s : map) {
    size_t eq = s.find('=');
    if (eq == std::string::npos) usage_error("OT0003", cat("--map takes INPUT=KEY, got '", s, "'"));
    o.map[s.substr(0, eq)] = s.substr(eq + 1);
  }
  o.adapt.scale = scale;
  o.adapt.nhwc = layout == "nhwc";
  o.adapt.label_offset = label_offset;
  return o;
}

LoadedData load_data(const DataFlags& f, const std::string& spec, const Training& t,
                     DataPart part) {
  OpenOptions open;
  open.part = part;
  open.csv.target = f.target;
  describe_inputs(t, open);
  return feeds_for(open_dataset(spec, open), t, f.feed_options());
}

}  // namespace onnxtrain::cli
