// Steps that new models of every kind of data share: what is opened, told and noted in the file.
#pragma once
#include "run/data/data_spec.hpp"
#include "run/new/model.hpp"
#include "run/new/target.hpp"

namespace onnxtrain::run {

OpenOptions open_options(const NewRequest& q);
void tell(const Dataset& data, Observer& observer);
void tell(const PreprocessPlan& plan, Observer& observer);
void tell_target(const NewTarget& t, const std::string& name, int64_t rows, Observer& observer);
NetworkSpec network_spec(const NewRequest& q, const NewTarget& t, Shape row);
// columns: of a table.
void note_target(const NewTarget& t, const std::vector<std::string>& columns, Model& m);
// The input `x` of a network from one input per column, or one for all when they are many numbers.
Model in_front(const Model& net, const std::string& x, const PreprocessPlan& plan, uint64_t seed);
// An output gives way to a column of its name.
void give_way(const PreprocessPlan& plan, NetworkSpec& s);

// A table with a column of texts.
Model new_text_model(const NewRequest& q, const OpenOptions& open, Observer& observer);

// A network that was never trained needs a number of steps, however few rows there are: epochs when
// nobody says how many. kind: of `new`; "": any other model.
int64_t usual_epochs(const std::string& kind, int64_t rows, int64_t batch);

}  // namespace onnxtrain::run
