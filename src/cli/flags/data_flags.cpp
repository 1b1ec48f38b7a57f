// Flags -> what data is asked for.
#include "cli/flags/data_flags.hpp"

#include "core/shell.hpp"
#include "core/text.hpp"

namespace onnxtrain::cli {

void DataFlags::add_to(Registry& r, CLI::App* c, bool required, bool brief) {
  const char* g = "Data";
  auto more = [&](CLI::Option* o) { return brief ? r.rare(o, g) : o->group(g); };
  auto* o =
      c->add_option("--data", data,
                    "npy, npz, safetensors, idx, csv file, a folder, - (csv), or synthetic:...")
          ->group(g);
  if (required) o->required();
  c->add_option("--target", target, "csv: the target column, or several: A,B")->group(g);
  more(c->add_option("--drop", drop, "csv: columns to leave out: A,B"));
  more(c->add_option("--map", map, "INPUT=KEY: which array feeds which input"));
  more(c->add_option("--scale", scale, "auto|none|standard|minmax (of every column)|MEAN,STD"));
  more(c->add_flag("--standardize", standardize, "the same as --scale standard"));
  more(c->add_option("--encoding", encoding, "csv: utf-8|utf-16|latin1|cp1252"));
  more(c->add_option("--separator", separator, "csv: one character, or tab (default: detected)"));
  auto* l = c->add_option("--layout", layout,
                          "nchw|nhwc: order of channels in the data; not given: as in the data "
                          "that the model was made for")
                ->check(CLI::IsMember({"nchw", "nhwc"}));
  more(l);
  layout_option = l;
  more(c->add_option("--images", images,
                     "csv with a column of image files: the folder they lie in (default: that of "
                     "the csv)"));
  more(c->add_flag("--skip-bad", skip_bad, "damaged images are left out, not an error"));
  more(c->add_option("--text", text, "csv: the column of texts, or several: A,B"));
  more(c->add_option("--tokenizer", tokenizer, "tokenizer.json for --text (needs Python)"));
  more(c->add_option("--max-length", max_length, "tokens per text (0: 128)")
           ->check(CLI::NonNegativeNumber));
  more(c->add_option("--label-offset", label_offset, "added to every class label"));
}

run::DataRequest DataFlags::request() const {
  run::DataRequest q;
  q.data = data;
  q.target = target;
  q.drop = drop;
  for (const std::string& s : map) {
    size_t eq = s.find('=');
    if (eq == std::string::npos)
      usage_error(
          "OT0003", cat("--map takes INPUT=KEY, got '", s, "'"),
          cat("for example --map ", s.empty() ? "x" : s, "=KEY, the name of an array or column"));
    q.feed.map[s.substr(0, eq)] = s.substr(eq + 1);
  }
  q.skip_bad = skip_bad;
  q.images = images;
  q.text = {text, tokenizer, max_length};
  q.encoding = encoding;
  q.separator = separator;
  if (standardize && scale != "auto" && scale != "standard")
    usage_error("OT0003", cat("--standardize and --scale ", scale, " are two scales"),
                "leave one of them out");
  q.feed.adapt.scale = standardize ? "standard" : scale;
  const bool said = layout == "nhwc" || layout_option->count() > 0;
  q.feed.adapt.layout = said ? layout_of_word(layout) : Layout::kAuto;
  q.feed.adapt.label_offset = label_offset;
  return q;
}

std::string DataFlags::reading() const {
  return cat(images.empty() ? std::string() : " --images " + shell_word(images),
             skip_bad ? " --skip-bad" : "");
}

}  // namespace onnxtrain::cli
