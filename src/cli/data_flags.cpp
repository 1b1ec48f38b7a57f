// Flags -> datasets.
#include "cli/data_flags.hpp"

namespace onnxtrain::cli {

void DataFlags::add_to(Registry& r, CLI::App* c, bool required, bool brief) {
  const char* g = "Data";
  auto more = [&](CLI::Option* o) { return brief ? r.rare(o, g) : o->group(g); };
  auto* o = c->add_option("--data", data,
                          "npy, npz, safetensors, idx, csv file, a folder, or synthetic:...")
                ->group(g);
  if (required) o->required();
  c->add_option("--target", target, "csv: the target column")->group(g);
  more(c->add_option("--map", map, "INPUT=KEY: which array feeds which input"));
  more(c->add_option("--scale", scale, "auto|none|MEAN,STD"));
  more(c->add_option("--layout", layout, "nchw|nhwc: how images lie in the data")
           ->check(CLI::IsMember({"nchw", "nhwc"})));
  more(c->add_option("--label-offset", label_offset, "added to every class label"));
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

LoadedData load_data(const DataFlags& f, const std::string& spec, const Training& t, DataPart part,
                     bool like_trained) {
  OpenOptions open;
  open.part = part;
  open.csv.target = f.target;
  FeedOptions feed = f.feed_options();
  if (like_trained) options_from_metadata(t.source(), feed, open.csv);
  describe_inputs(t, open);
  return feeds_for(open_dataset(spec, open), t, feed);
}

}  // namespace onnxtrain::cli
