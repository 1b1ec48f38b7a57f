// The C API's datasets: files and folders as they are.
#include <nlohmann/json.hpp>

#include "api/handles.hpp"
#include "data/open.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;
using nlohmann::json;

ot_status ot_dataset_open(const char* spec, const char* options, ot_dataset** out) {
  return guarded({{"spec", spec}, {"out", out}}, [&] {
    OpenOptions o;
    const json given = json::parse(options ? options : "{}");  // must outlive items()
    for (const auto& [key, value] : given.items()) {
      if (key == "target")
        o.csv.target = value;
      else if (key == "part" && (value == "train" || value == "test"))
        o.part = value == "test" ? DataPart::kTest : DataPart::kTrain;
      else
        usage_error("OT1152", cat("a dataset has no option '", key, "' = ", value.dump()),
                    "known are part (train or test) and target");
    }
    *out = new ot_dataset{open_dataset(spec, o)};
  });
}

void ot_dataset_free(ot_dataset* d) { delete d; }

int64_t ot_dataset_rows(const ot_dataset* d) { return d ? d->d.rows() : 0; }

ot_status ot_dataset_info(const ot_dataset* d, ot_text** out) {
  return guarded({{"d", d}, {"out", out}}, [&] {
    json columns = json::array();
    for (const std::string& name : d->d.columns())
      columns.push_back({{"name", name},
                         {"type", type_text(d->d.dtype(name))},
                         {"row_shape", d->d.row_shape(name)},
                         {"classes", d->d.class_names(name)}});
    json j{{"source", d->d.source()},
           {"format", d->d.format()},
           {"rows", d->d.rows()},
           {"columns", columns},
           {"notes", d->d.notes()}};
    *out = new ot_text{j.dump()};
  });
}
