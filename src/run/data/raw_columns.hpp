// Models that take the columns of a table one by one, as text and numbers: what each input wants.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "data/table/csv.hpp"
#include "model/model.hpp"
#include "run/data/feeds.hpp"

namespace onnxtrain::run {

// The graph puts a number in the place of NaN before it computes with the input (Imputer).
bool takes_missing(const Graph& g, ValueId input);
// Texts that the graph tells apart at an input (OneHotEncoder, LabelEncoder); empty: not known.
std::vector<std::string> categories_of(const Graph& g, ValueId input);

// How the columns of a table feed the inputs of such a model, in their order; empty for any other
// model. map: input -> column. Dates are where the model's metadata says so. tokens: inputs that a
// tokenizer feeds; beside them every other input is a column.
std::vector<CsvColumn> raw_columns(const Model& m, const std::map<std::string, std::string>& map,
                                   const std::vector<std::string>& tokens = {});

// Tells the csv reader what the model's inputs want.
void read_raw_columns(const Model& m, const FeedOptions& feed, CsvOptions& csv);

// A column by its word in that metadata: "number", "number, $#", "date", ...; NaN for what is
// missing.
CsvColumn column_of_word(const std::string& name, const std::string& word);

// The metadata of a model whose inputs are these columns.
void note_columns(const std::vector<CsvColumn>& columns, std::map<std::string, std::string>& m);
inline constexpr const char* kColumnsKey = "onnxtrain.columns";

}  // namespace onnxtrain::run
