// The C API's datasets: files and folders as they are.
#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include "api/handles.hpp"
#include "data/open.hpp"
#include "data/table/csv.hpp"
#include "data/table/csv_column.hpp"
#include "run/data/raw_columns.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;
using nlohmann::json;

Dataset onnxtrain::api::dataset_of(size_t n, const char* const* names, ot_value* const* columns) {
  check_lists(n, names, columns);
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (size_t k = 0; k < n; ++k) {
    const Tensor* t = std::get_if<Tensor>(&columns[k]->v);
    if (!t) data_error("OT2105", cat("'", names[k], "' is not an array"));
    arrays.emplace_back(names[k], *t);
  }
  return Dataset::from_tensors(arrays);
}

namespace {

// Batches of the caller's functions.
class CallerStream final : public BatchStream {
 public:
  explicit CallerStream(const ot_batches& source) : source_(source) {}
  void begin(int64_t epoch) override {
    drawn_ = 0;
    if (source_.begin && source_.begin(source_.context, epoch) != 0) failed();
  }
  bool next(Values& out) override {
    if (source_.per_epoch > 0 && drawn_ >= source_.per_epoch) return false;
    ot_batch batch{sizeof(ot_batch), 0, nullptr, nullptr};
    const int there = source_.next(source_.context, &batch);
    if (there < 0) failed();
    if (there == 0) return false;
    ++drawn_;
    check_lists(batch.count, batch.names, batch.values);
    out.clear();
    for (size_t k = 0; k < batch.count; ++k) out.emplace_back(batch.names[k], batch.values[k]->v);
    return true;
  }
  int64_t batches() const override { return source_.per_epoch; }

 private:
  [[noreturn]] static void failed() {
    data_error("OT2154", "whoever makes the batches reports a failure",
               "what failed is known there: ot_batches.begin or next returned it");
  }
  ot_batches source_;
  int64_t drawn_ = 0;  // of this epoch
};

std::vector<std::string> names_of(const std::string& text) {
  return text.empty() ? std::vector<std::string>() : std::vector<std::string>{text};
}

// Test data that are not there must not be other rows. All rows may be training data: a note says
// so.
void choose_part(DataPart part, OpenOptions& o) {
  o.part = part;
  o.part_asked = part == DataPart::kTest;
  o.part_option = "part ";
}

}  // namespace

ot_status ot_dataset_batches(const ot_batches* source, ot_dataset** out) {
  return guarded({{"source", source}, {"out", out}}, [&] {
    ot_batches known{};  // callers of another version have another size
    std::memcpy(&known, source, std::min(source->size, sizeof known));
    if (!known.next) usage_error("OT1129", "ot_batches has no function 'next'");
    *out = new ot_dataset{{}, std::make_unique<CallerStream>(known)};
  });
}

ot_status ot_dataset_arrays(size_t n_columns, const char* const* names, ot_value* const* columns,
                            ot_dataset** out) {
  return guarded({{"out", out}}, [&] {
    *out = new ot_dataset{dataset_of(n_columns, names, columns), nullptr};
  });
}

ot_status ot_dataset_open(const char* spec, const char* options, ot_dataset** out) {
  return guarded({{"spec", spec}, {"out", out}}, [&] {
    OpenOptions o;
    const json given = json::parse(options ? options : "{}");  // must outlive items()
    for (const auto& [key, value] : given.items()) {
      if (key == "target")
        o.csv.targets = names_of(value);
      else if (key == "drop")
        o.csv.drop = names_of(value);
      else if (key == "part" && (value == "train" || value == "test"))
        choose_part(value == "test" ? DataPart::kTest : DataPart::kTrain, o);
      else
        usage_error("OT1152", cat("a dataset has no option '", key, "' = ", value.dump()),
                    "known are part (train or test), target and drop");
    }
    Dataset d = open_dataset(spec, o);
    if (given.contains("part") && !d.of_part())
      d.add_note("the source has no parts: all rows are taken as training data");
    *out = new ot_dataset{std::move(d), nullptr};
  });
}

ot_status ot_column_numbers(const char* name, const char* word, size_t n, const char* const* texts,
                            double* out) {
  return guarded({{"name", name}, {"word", word}, {"texts", texts}, {"out", out}}, [&] {
    CsvColumnBuilder column(run::column_of_word(name, word));
    for (size_t k = 0; k < n; ++k)
      column.add(texts[k], [&] { return cat("row ", k, " of column '", name, "'"); });
    const Tensor found = column.numbers();
    std::copy_n(found.as<double>(), n, out);
  });
}

const char* ot_missing_words(void) {
  static const std::string words = json(csv_missing_words()).dump();
  return words.c_str();
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
