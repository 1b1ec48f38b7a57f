// A Python process that reads data.
#include "cli/processes/data_process.hpp"

#include <cstring>

#include "cli/processes/python_process.hpp"
#include "core/error.hpp"
#include "data/table/foreign_table.hpp"
#include "run/data/text.hpp"

namespace onnxtrain::cli {

namespace {

PythonProcess::Message ask(PythonProcess& p, const PythonProcess::Json& message) {
  try {
    return p.ask(message, {});
  } catch (const Error& e) {  // what is wrong is the data, or a package that is missing
    throw Error(ErrorKind::kData, e.code(), e.message(), e.hint());
  }
}

std::unique_ptr<PythonProcess> start() {
  auto p = std::make_unique<PythonProcess>(
      "onnxtrain.serve_data", std::vector<std::string>{""},
      PythonProcess::Failure{"the Python process that reads data", "OT2220", "",
                             "pip install onnxtrain[text]   or name the interpreter in "
                             "ONNXTRAIN_PYTHON"});
  p->receive();
  return p;
}

std::string csv_of(const std::string& path) {
  try {
    const auto p = start();
    const auto [said, tensors] = ask(*p, {{"do", "table"}, {"path", path}});
    OT_ASSERT(tensors.size() == 1);
    const Tensor& t = tensors[0].second;
    return {static_cast<const char*>(t.data()), t.bytes()};
  } catch (const Error& e) {
    throw Error(ErrorKind::kData, e.code(), cat("parquet file '", path, "': ", e.message()),
                e.hint());
  }
}

class Tokens final : public run::Tokenizer {
 public:
  Tokens(const std::string& content, const std::string& name) : python_(start()) {
    const auto [said, none] =
        ask(*python_, {{"do", "tokenizer"}, {"content", content}, {"name", name}});
    vocabulary_ = said.value("vocabulary", int64_t(0));
  }
  int64_t vocabulary() const override { return vocabulary_; }
  std::pair<Tensor, Tensor> encode(const std::vector<std::string>& texts, int64_t length) override {
    const auto [said, tensors] =
        ask(*python_, {{"do", "tokens"}, {"texts", texts}, {"length", length}});
    OT_ASSERT(tensors.size() == 2);
    return {tensors[0].second, tensors[1].second};
  }

 private:
  std::unique_ptr<PythonProcess> python_;
  int64_t vocabulary_ = 0;
};

}  // namespace

void use_python_for_data() {
  set_table_reader(csv_of);
  run::set_tokenizer_factory([](const std::string& content, const std::string& name) {
    return std::make_unique<Tokens>(content, name);
  });
}

}  // namespace onnxtrain::cli
