// Values of the tree ensembles.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
OpCase tree_op(const char* op, int version = 1) {
  return OpCase(op, version, std::string(kMlDomain));
}
}  // namespace

namespace {

// x[0] <= 0.5 ? leaf 1 : (x[1] <= 2 ? leaf 3 : leaf 4)
OpCase small_tree(const char* op, int version) {
  return tree_op(op, version)
      .attr("nodes_treeids", Ints{0, 0, 0, 0, 0})
      .attr("nodes_nodeids", Ints{0, 1, 2, 3, 4})
      .attr("nodes_featureids", Ints{0, 0, 1, 0, 0})
      .attr("nodes_values", std::vector<float>{0.5f, 0, 2, 0, 0})
      .attr("nodes_modes",
            std::vector<std::string>{"BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"})
      .attr("nodes_truenodeids", Ints{1, 0, 3, 0, 0})
      .attr("nodes_falsenodeids", Ints{2, 0, 4, 0, 0})
      .attr("nodes_missing_value_tracks_true", Ints{0, 0, 0, 0, 0})
      .attr("nodes_hitrates", std::vector<float>{1, 1, 1, 1, 1});
}

Tensor three_rows() { return floats({0, 9, 1, 2, 1, 3}, {3, 2}); }

}  // namespace

TEST(Tree, Regressor) {
  small_tree("TreeEnsembleRegressor", 3)
      .attr("target_treeids", Ints{0, 0, 0})
      .attr("target_nodeids", Ints{1, 3, 4})
      .attr("target_ids", Ints{0, 0, 0})
      .attr("target_weights", std::vector<float>{10, 20, 30})
      .attr("base_values", std::vector<float>{1})
      .attr("n_targets", int64_t(1))
      .input(three_rows())
      .expect(floats({11, 21, 31}, {3, 1}));
}

TEST(Tree, Classifier) {
  small_tree("TreeEnsembleClassifier", 3)
      .outputs(2)
      .attr("class_treeids", Ints{0, 0, 0})
      .attr("class_nodeids", Ints{1, 3, 4})
      .attr("class_ids", Ints{2, 0, 1})
      .attr("class_weights", std::vector<float>{1, 2, 3})
      .attr("classlabels_int64s", Ints{40, 50, 60})
      .input(three_rows())
      .expect(ints({60, 40, 50}), 0)
      .expect(floats({0, 0, 1, 2, 0, 0, 0, 3, 0}, {3, 3}), 1);
}

TEST(Tree, Ensemble) {
  tree_op("TreeEnsemble", 5)
      .attr("n_targets", int64_t(1))
      .attr("aggregate_function", int64_t(1))
      .attr("post_transform", int64_t(0))
      .attr("tree_roots", Ints{0})
      .attr("nodes_modes", Tensor::vector<uint8_t>({0, 0}))
      .attr("nodes_featureids", Ints{0, 1})
      .attr("nodes_splits", Tensor::vector<float>({0.5f, 2}))
      .attr("nodes_truenodeids", Ints{0, 1})
      .attr("nodes_trueleafs", Ints{1, 1})
      .attr("nodes_falsenodeids", Ints{1, 2})
      .attr("nodes_falseleafs", Ints{0, 1})
      .attr("leaf_targetids", Ints{0, 0, 0})
      .attr("leaf_weights", Tensor::vector<float>({10, 20, 30}))
      .input(three_rows())
      .expect(floats({10, 20, 30}, {3, 1}));
}

TEST(Tree, BrokenTreesAreErrors) {
  EXPECT_THROW(small_tree("TreeEnsembleRegressor", 3)
                   .attr("nodes_truenodeids", Ints{0, 0, 3, 0, 0})  // its own child
                   .attr("target_treeids", Ints{0})
                   .attr("target_nodeids", Ints{1})
                   .attr("target_ids", Ints{0})
                   .attr("target_weights", std::vector<float>{1})
                   .input(three_rows())
                   .run(),
               Error);
}

}  // namespace onnxtrain::testing
