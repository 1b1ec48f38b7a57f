// Updates of few rows of a table: the same bits as the update by the whole gradient.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/program.hpp"
#include "passes/passes.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

constexpr int64_t kColumns = 70;  // more than one strip of columns, no whole number of vectors

struct Table {
  Graph g;
  std::vector<std::pair<ValueId, std::string>> updates;
  std::vector<int64_t> indices;
  int64_t rows;
  bool adagrad;

  Table(int64_t rows, std::vector<int64_t> ix, bool adagrad, double decay = 0)
      : indices(std::move(ix)), rows(rows), adagrad(adagrad) {
    const int64_t n = int64_t(indices.size());
    ValueId dy = g.add_value("dy", TypeInfo::tensor(DType::kFloat, {n, kColumns}));
    g.inputs = {dy};
    ValueId at = g.add_value("at", TypeInfo::tensor(DType::kInt64, {n}));
    g.inputs.push_back(at);
    Tensor shape(DType::kInt64, {2});
    shape.as<int64_t>()[0] = rows;
    shape.as<int64_t>()[1] = kColumns;
    Node made;
    made.op = "GatherGrad";
    made.domain = std::string(kOwnDomain);
    made.version = 1;
    made.inputs = {dy, at, g.add_constant(shape)};
    ValueId gradient = add(std::move(made), 1)[0];
    Node u;
    u.version = 1;
    u.inputs = {g.add_constant(Tensor::scalar(0.1f))};
    if (adagrad) u.inputs.push_back(g.add_constant(Tensor::scalar(int64_t(3))));
    u.inputs.push_back(variable("x"));
    u.inputs.push_back(gradient);
    if (adagrad) u.inputs.push_back(variable("h"));
    u.op = adagrad ? "Adagrad" : "Sgd";
    u.domain = std::string(adagrad ? kTrainingDomain : kOwnDomain);
    if (adagrad)
      u.attrs["norm_coefficient"] = float(decay);
    else
      u.attrs["decay"] = Tensor::scalar(decay);
    std::vector<ValueId> out = add(std::move(u), adagrad ? 2 : 1);
    updates = {{out[0], "x"}};
    if (adagrad) updates.emplace_back(out[1], "h");
  }

  std::vector<ValueId> add(Node n, int outputs) {
    std::vector<ValueId> out = g.add_node(std::move(n), outputs);
    for (ValueId v : out) g.value(v).type = TypeInfo::tensor(DType::kFloat, {rows, kColumns});
    return out;
  }
  ValueId variable(const std::string& name) {
    ValueId v = g.add_value(name, TypeInfo::tensor(DType::kFloat, {rows, kColumns}));
    g.value(v).state = name;
    return v;
  }

  std::string ops() const {
    Graph c = g.clone();
    std::vector<ValueId> keep;
    for (const auto& u : updates) keep.push_back(u.first);
    pass_row_updates(c, PassContext{keep, all_ops()});
    c.renumber();
    c.verify("row_updates");
    std::string s;
    for (const Node& n : c.nodes) s += n.op + " ";
    return s;
  }

  std::vector<Tensor> run(bool by_rows, int threads) const {
    auto state = std::make_shared<State>();
    for (const auto& [v, name] : updates)
      state->set(name, random_tensor({rows, kColumns}, 0.1, 1, name[0]));
    ProgramOptions o;
    if (!by_rows) o.skip_passes = {"row_updates"};
    Program p(g.clone(), updates, state, std::make_shared<ThreadPool>(threads), o);
    Tensor at(DType::kInt64, {int64_t(indices.size())});
    std::copy(indices.begin(), indices.end(), at.as<int64_t>());
    for (uint64_t k = 0; k < 2; ++k)
      p.run({random_tensor({int64_t(indices.size()), kColumns}, -1, 1, k), at}, 1, k);
    std::vector<Tensor> out;
    for (const auto& [v, name] : updates) out.push_back(state->get(name));
    return out;
  }
};

const std::vector<int64_t> kRepeated = {5, 0, 5, 29, -1, 5, 7};

void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k)
    EXPECT_EQ(std::memcmp(a[k].data(), b[k].data(), a[k].bytes()), 0) << k;
}

}  // namespace

TEST(RowUpdates, SgdAndAdagradHaveTheBitsOfTheWholeGradient) {
  for (bool adagrad : {false, true}) {
    Table t(30, kRepeated, adagrad);
    EXPECT_EQ(t.ops(), adagrad ? "RowSums AdagradRows " : "RowSums SgdRows ");
    for (int threads : {1, 2, 4}) expect_same(t.run(true, threads), t.run(false, 1));
  }
}

TEST(RowUpdates, OnlyWhereAnUntouchedRowStaysAsItIs) {
  EXPECT_EQ(Table(30, kRepeated, false, 0.01).ops(), "GatherGrad Sgd ");
  EXPECT_EQ(Table(30, kRepeated, true, 0.01).ops(), "GatherGrad Adagrad ");
  // most rows are read: the whole table costs no more
  EXPECT_EQ(Table(13, {5, 0, 5, 2, 1, 5, 7}, false).ops(), "GatherGrad Sgd ");
}

TEST(RowUpdates, AnIndexOutOfRangeIsAnErrorAndNothingIsWritten) {
  EXPECT_THROW(Table(30, {5, 30, 1}, false).run(true, 1), Error);
}

}  // namespace onnxtrain::testing
