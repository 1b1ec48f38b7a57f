// Processes that work together must have been given the same.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "distributed/communicator.hpp"
#include "engine/training.hpp"

namespace onnxtrain::run {

uint64_t hash_of(const std::string& text);
// The inference graph and its weights; t: the current ones, but for what processes share out.
uint64_t hash_of(const Model& m, const Training* t = nullptr);
// Everything else of a training: algorithms, and state beside the model's.
uint64_t hash_of_training(const Training& t);

// Throws OT5007 when one of these facts, or the version of onnxtrain, differs between processes.
// Null: there is one.
using Facts = std::vector<std::pair<std::string, uint64_t>>;
void check_same(Communicator* c, const Facts& facts);
// The same for lines of text, KEY = VALUE: names the first that differs.
void check_same_lines(Communicator* c, const std::string& text);

}  // namespace onnxtrain::run
