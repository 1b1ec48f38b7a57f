// The reader of foreign tables.
#include "data/table/foreign_table.hpp"

#include "core/error.hpp"
#include "core/text.hpp"

namespace onnxtrain {

namespace {

TableReader& reader() {
  static TableReader r;
  return r;
}

}  // namespace

void set_table_reader(TableReader r) { reader() = std::move(r); }

std::string foreign_table_as_csv(const std::string& path) {
  if (!reader())
    data_error("OT2205", cat("'", path, "' is parquet, and this program reads csv, npz and others"),
               "the command line reads it with Python, or as a table:  pandas.read_parquet(path)");
  return reader()(path);
}

}  // namespace onnxtrain
