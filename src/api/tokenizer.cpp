// The C API: token ids by functions of the caller.
#include "api/handles.hpp"
#include "run/data/text.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;

namespace {

class CallbackTokenizer final : public run::Tokenizer {
 public:
  CallbackTokenizer(const ot_tokenizer& t, const std::string& content, const std::string& name)
      : t_(t), name_(name) {
    const char* error = nullptr;
    vocabulary_ = t_.open(t_.context, content.c_str(), name.c_str(), &error);
    if (vocabulary_ < 0) failed(error);
  }
  int64_t vocabulary() const override { return vocabulary_; }
  std::pair<Tensor, Tensor> encode(const std::vector<std::string>& texts, int64_t length) override {
    std::vector<const char*> p;
    for (const std::string& s : texts) p.push_back(s.c_str());
    Tensor ids(DType::kInt64, {int64_t(texts.size()), length}), mask(DType::kInt64, ids.shape());
    const char* error = nullptr;
    if (t_.encode(t_.context, p.size(), p.data(), length, ids.as<int64_t>(), mask.as<int64_t>(),
                  &error) != 0)
      failed(error);
    return {ids, mask};
  }

 private:
  [[noreturn]] void failed(const char* error) const {
    data_error("OT2222", cat("the tokenizer '", name_, "' failed: ", error ? error : ""),
               "tokenizer.save('tokenizer.json') of the package tokenizers writes one");
  }
  ot_tokenizer t_;
  std::string name_;
  int64_t vocabulary_ = 0;
};

}  // namespace

ot_status ot_set_tokenizer(const ot_tokenizer* t) {
  return guarded({}, [&] {
    if (!t) return run::set_tokenizer_factory(nullptr);
    check_needed({{"open", reinterpret_cast<const void*>(t->open)},
                  {"encode", reinterpret_cast<const void*>(t->encode)}});
    run::set_tokenizer_factory([copy = *t](const std::string& content, const std::string& name) {
      return std::make_unique<CallbackTokenizer>(copy, content, name);
    });
  });
}
