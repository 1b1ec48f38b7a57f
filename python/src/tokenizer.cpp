// Token ids by a Python object: open(content, name) -> number of tokens, encode(texts, length) ->
// (ids, mask) as bytes of int64 (onnxtrain/text.py).
#include <cstring>

#include "native.hpp"

namespace otpy {

namespace {

struct PyTokenizer {
  nb::object maker;
  std::string text;  // of the last failure
};

int64_t open(void* context, const char* content, const char* name, const char** error) {
  nb::gil_scoped_acquire gil;
  PyTokenizer& t = *static_cast<PyTokenizer*>(context);
  try {
    return nb::cast<int64_t>(t.maker.attr("open")(content, name));
  } catch (const std::exception& e) {
    t.text = e.what();
    *error = t.text.c_str();
    return -1;
  }
}

int encode(void* context, size_t n, const char* const* texts, int64_t length, int64_t* ids,
           int64_t* mask, const char** error) {
  nb::gil_scoped_acquire gil;
  PyTokenizer& t = *static_cast<PyTokenizer*>(context);
  try {
    nb::list all;
    for (size_t k = 0; k < n; ++k) all.append(nb::str(texts[k]));
    const nb::object made = t.maker.attr("encode")(all, length);
    const auto a = nb::cast<nb::bytes>(made[0]), b = nb::cast<nb::bytes>(made[1]);
    const size_t bytes = n * size_t(length) * sizeof(int64_t);
    if (a.size() != bytes || b.size() != bytes) throw std::runtime_error("another size");
    std::memcpy(ids, a.c_str(), bytes);
    std::memcpy(mask, b.c_str(), bytes);
    return 0;
  } catch (const std::exception& e) {
    t.text = e.what();
    *error = t.text.c_str();
    return 1;
  }
}

}  // namespace

void bind_tokenizer(nb::module_& m) {
  m.def(
      "set_tokenizer",
      [](nb::object maker) {
        static PyTokenizer& t = *new PyTokenizer();  // one of the process
        t.maker = std::move(maker);
        ot_tokenizer c{};
        c.size = sizeof c;
        c.context = &t;
        c.open = open;
        c.encode = encode;
        ok(ot_set_tokenizer(&c));
      },
      "maker"_a);
}

}  // namespace otpy
