// Tensors as bytes, and back.
#include "distributed/gather_tensors.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace onnxtrain {

namespace {

class Writer {
 public:
  void number(int64_t n) { bytes(&n, sizeof n); }
  void bytes(const void* p, size_t n) { text.append(static_cast<const char*>(p), n); }
  void tensor(const Tensor& t) {
    number(t.defined());
    if (!t.defined()) return;
    number(int64_t(t.dtype()));
    number(t.rank());
    for (int64_t d : t.shape()) number(d);
    if (t.dtype() != DType::kString) return bytes(t.data(), t.bytes());
    for (int64_t i = 0; i < t.size(); ++i) {
      const std::string& s = t.as<std::string>()[i];
      number(int64_t(s.size()));
      bytes(s.data(), s.size());
    }
  }
  std::string text;
};

class Reader {
 public:
  explicit Reader(const char* p) : p_(p) {}
  int64_t number() {
    int64_t n = 0;
    bytes(&n, sizeof n);
    return n;
  }
  void bytes(void* to, size_t n) {
    if (n > 0) std::memcpy(to, p_, n);
    p_ += n;
  }
  Tensor tensor() {
    if (number() == 0) return {};
    const auto type = DType(number());
    Shape shape(static_cast<size_t>(number()));
    for (int64_t& d : shape) d = number();
    Tensor t(type, shape);
    if (type != DType::kString) {
      bytes(t.data(), t.bytes());
      return t;
    }
    for (int64_t i = 0; i < t.size(); ++i) {
      std::string s(size_t(number()), '\0');
      bytes(s.data(), s.size());
      t.as<std::string>()[i] = std::move(s);
    }
    return t;
  }

 private:
  const char* p_;
};

}  // namespace

std::vector<std::vector<Tensor>> gather_tensors(Communicator& c, const std::vector<Tensor>& mine,
                                                size_t at_once) {
  Writer w;
  w.number(int64_t(mine.size()));
  for (const Tensor& t : mine) w.tensor(t);
  const auto ranks = size_t(c.size()), me = size_t(c.rank());
  std::vector<uint64_t> sizes(ranks);
  const uint64_t size = w.text.size();
  c.all_gather(&size, sizeof size, sizes.data());
  std::vector<size_t> offsets(ranks + 1, 0);
  for (size_t r = 0; r < ranks; ++r) offsets[r + 1] = offsets[r] + sizes[r];
  std::vector<char> all(offsets[ranks]);
  std::memcpy(all.data() + offsets[me], w.text.data(), w.text.size());
  if (all.size() <= at_once) {
    c.wait(c.start_collect(all.data(), offsets.data()));
  } else {
    for (size_t r = 0; r < ranks; ++r)
      for (size_t at = offsets[r]; at < offsets[r + 1]; at += at_once)
        c.broadcast(all.data() + at, std::min(at_once, offsets[r + 1] - at), int(r));
  }
  std::vector<std::vector<Tensor>> result(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    Reader in(all.data() + offsets[r]);
    for (int64_t n = in.number(); n > 0; --n) result[r].push_back(in.tensor());
  }
  return result;
}

}  // namespace onnxtrain
