// Flags -> preprocessing.
#include "cli/flags/preprocess_flags.hpp"

namespace onnxtrain::cli {

std::vector<std::string> comma_list(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    if (end > at) out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

void PreprocessFlags::add_to(Registry& r, CLI::App* c, bool optional) {
  const char* g = "Columns of a table";
  auto more = [&](CLI::Option* o) { return optional ? r.rare(o, g) : o->group(g); };
  if (optional)
    more(c->add_option("--preprocess", mode,
                       "none|auto: fill, scale and encode the columns of a table, resize and scale "
                       "images, in the model; "
                       "--impute, --one-hot and --embed do so, too")
             ->check(CLI::IsMember({"none", "auto"})));
  more(c->add_option("--impute", impute,
                     "missing numbers: median|mean|most_frequent|constant|constant:NUMBER"));
  more(c->add_option("--one-hot", one_hot, "columns that become one number per category: A,B|all"));
  more(c->add_option("--embed", embed, "columns that become a learnt vector: A,B|all"));
  const char* images =
      "images of another size: stretch|crop (the middle)|pad (black), in the model";
  auto* o = c->add_option("--resize", resize, images);
  o->check(CLI::IsMember({"stretch", "crop", "pad"}));
  optional ? r.rare(o, "Data") : o->group("Network");
}

run::PreprocessOptions PreprocessFlags::options(const std::string& scale) const {
  return {impute, scale, comma_list(one_hot), comma_list(embed), resize};
}

}  // namespace onnxtrain::cli
