// Tables in formats that another program reads (parquet): it gives them as csv.
#pragma once
#include <functional>
#include <string>

namespace onnxtrain {

using TableReader = std::function<std::string(const std::string& path)>;
// Who reads them; none: OT2205.
void set_table_reader(TableReader reader);
std::string foreign_table_as_csv(const std::string& path);

}  // namespace onnxtrain
