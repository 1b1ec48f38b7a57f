// The operator table: records by version, and a case for every record among the tests of src/ops.
#include "op/op.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.hpp"

namespace onnxtrain::testing {

namespace {

// The texts of all tests beside operators and beside the passes that make some of them; the tests
// run in the project's folder.
std::string operator_tests() {
  std::ostringstream all;
  for (const char* folder : {"src/ops", "src/passes"})
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
      if (file.path().string().ends_with("_test.cpp")) all << std::ifstream(file.path()).rdbuf();
  return all.str();
}

// Gradients, and forms that keep something for them, run in the cases of their operator
// (OpCase::check_grad).
std::string tested_as(const Op& op) {
  if (op.domain != kOwnDomain) return op.name;
  for (const char* suffix : {"GradX", "GradW", "Grad", "Train", "At"})
    if (op.name.ends_with(suffix) && op.name != suffix && op.name != "ListAt")
      return op.name.substr(0, op.name.size() - std::string(suffix).size());
  return op.name;
}

}  // namespace

TEST(OpTable, EveryRecordHasACase) {
  const std::string tests = operator_tests();
  ASSERT_GT(tests.size(), 100000u);
  for (const Op* op : all_ops().all()) {
    bool found = false;
    for (const std::string& name : {op->name, tested_as(*op)}) {
      for (const char* next : {"\"", "(", "<", " (", " <"})
        found |= tests.find(name + next) != std::string::npos;
      // what passes make stands in lists of operators
      found |= op->domain == kOwnDomain && tests.find(name + " ") != std::string::npos;
    }
    EXPECT_TRUE(found) << op->domain << " " << op->name;
  }
}

TEST(OpTable, TheRecordInForceIsTheNewestThatIsNotNewer) {
  OpTable t;
  for (int since : {1, 7, 13}) {
    Op op;
    op.name = "Some";
    op.since = since;
    t.add(op);
  }
  EXPECT_EQ(t.find("", "Some", 1)->since, 1);
  EXPECT_EQ(t.find("", "Some", 6)->since, 1);
  EXPECT_EQ(t.find("", "Some", 7)->since, 7);
  EXPECT_EQ(t.find("", "Some", 99)->since, 13);
  EXPECT_EQ(t.find("other", "Some", 7), nullptr);
  EXPECT_EQ(t.find("", "None", 7), nullptr);
  Node n;
  n.op = "None";
  EXPECT_THROW(t.get(n), Error);
}

// Every operator with a rule or a reason why there is none; never both.
TEST(OpTable, GradientsAreWrittenOrRefused) {
  for (const Op* op : all_ops().all())
    EXPECT_FALSE(op->grad && op->no_grad) << op->domain << " " << op->name;
}

}  // namespace onnxtrain::testing
