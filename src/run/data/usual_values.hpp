// Between which numbers the inputs of a training lay, so that data in other units, of another scale
// or with its columns exchanged is noticed.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "run/data/feeds.hpp"
#include "run/hooks/observer.hpp"

namespace onnxtrain::run {

inline constexpr const char* kValuesKey = "onnxtrain.values";

// As text for the metadata of a run: of floating-point inputs and of a numeric target, by column of
// a table, or of all elements together (images, signals, wide tables). "" when there are none.
std::string usual_values(const FeedColumns& rows, const Model& m);

// What is unlike: "column 'width' holds 430 to 690 here and 4.3 to 6.9 in the training"; "" when
// nothing is. metadata: of the training; features: names of the columns. A target is compared where
// `rows` say which it is.
std::string unlike_training(const FeedColumns& rows,
                            const std::map<std::string, std::string>& metadata,
                            const std::vector<std::string>& features);

// Says so when these are the rows that a run was trained on.
void note_training_data(const FeedColumns& rows, const std::map<std::string, std::string>& metadata,
                        Observer& observer);

// The same as a warning (OT3129); its text begins with `what`.
void warn_unlike(const FeedColumns& rows, const std::map<std::string, std::string>& metadata,
                 const std::vector<std::string>& features, Observer& observer,
                 const std::string& what = {});

}  // namespace onnxtrain::run
