// A walk over protobuf's wire format: tags and lengths only.
#include "onnx/message/lift.hpp"

#include <algorithm>
#include <cstring>

#include "core/fill.hpp"

namespace onnxtrain {

namespace {

constexpr uint64_t kLarge = 64 << 10;     // data of this size and more is lifted
constexpr size_t kMaxMessage = 64 << 20;  // what is left may not be larger: it is copied once more
constexpr char kMark = '\x01';            // no file name begins with it

enum class Kind { kModel, kTraining, kGraph, kTensor, kOther };
// Field numbers of onnx.proto.
constexpr uint32_t kModelGraph = 7, kModelTraining = 20, kTrainingInit = 1, kTrainingAlgorithm = 2,
                   kGraphInitializer = 5, kTensorRaw = 9, kTensorExternal = 13,
                   kTensorLocation = 14, kEntryKey = 1, kEntryValue = 2;

Kind child(Kind k, uint32_t field) {
  if (k == Kind::kModel && field == kModelGraph) return Kind::kGraph;
  if (k == Kind::kModel && field == kModelTraining) return Kind::kTraining;
  if (k == Kind::kTraining && (field == kTrainingInit || field == kTrainingAlgorithm))
    return Kind::kGraph;
  if (k == Kind::kGraph && field == kGraphInitializer) return Kind::kTensor;
  return Kind::kOther;
}

// Only dims, data_type, name, doc_string and metadata may stand beside lifted data: anything else
// is a second place of data or unknown, and protobuf and the checker shall see it with the data.
bool goes_with_lifted(uint32_t field) {
  return field == 1 || field == 2 || field == 8 || field == 12 || field == 16;
}

void put_varint(std::string& out, uint64_t v) {
  for (; v >= 0x80; v >>= 7) out.push_back(char(uint8_t(v) | 0x80));
  out.push_back(char(v));
}

void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_varint(out, uint64_t(field) << 3 | 2);
  put_varint(out, bytes.size());
  out.append(bytes);
}

void put_entry(std::string& out, std::string_view key, std::string_view value) {
  std::string entry;
  put_bytes(entry, kEntryKey, key);
  put_bytes(entry, kEntryValue, value);
  put_bytes(out, kTensorExternal, entry);
}

struct Malformed {};

class Lifter {
 public:
  Lifter(const MessageBytes& m, std::vector<LiftedTensor>& lifted) : m_(m), lifted_(lifted) {}

  std::string run() {
    std::string out;
    message(Kind::kModel, m_.size, out);
    fill_all(fills_);
    return out;
  }

 private:
  void read(uint64_t at, void* out, size_t n) {
    auto* to = static_cast<char*>(out);
    while (n > 0) {
      if (at < from_ || at >= from_ + window_.size()) {
        from_ = at;
        window_.resize(size_t(std::min<uint64_t>(256 << 10, m_.size - at)));
        m_.read(at, window_.data(), window_.size());
      }
      const size_t k = std::min(n, size_t(from_ + window_.size() - at));
      std::memcpy(to, window_.data() + (at - from_), k);
      at += k;
      to += k;
      n -= k;
    }
  }

  uint64_t varint(uint64_t end) {
    uint64_t v = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      uint8_t b = 0;
      if (at_ >= end) throw Malformed{};
      read(at_++, &b, 1);
      if (shift == 63 && b > 1) throw Malformed{};
      v |= uint64_t(b & 0x7f) << shift;
      if (b < 0x80) return v;
    }
    throw Malformed{};
  }

  void copy(uint64_t begin, uint64_t end, std::string& out) {
    if (end - begin > kMaxMessage || out.size() + size_t(end - begin) > kMaxMessage)
      throw Malformed{};
    const size_t old = out.size();
    out.resize(old + size_t(end - begin));
    read(begin, out.data() + old, size_t(end - begin));
  }

  // One message from at_ to `end`.
  void message(Kind kind, uint64_t end, std::string& out) {
    while (at_ < end) {
      const uint64_t begin = at_, tag = varint(end);
      const auto field = uint32_t(tag >> 3);
      if (tag > UINT32_MAX || field == 0) throw Malformed{};
      const uint64_t length = content_length(uint32_t(tag & 7), end);
      if (length > end - at_) throw Malformed{};
      const uint64_t next = at_ + length;
      const Kind inner = (tag & 7) == 2 ? child(kind, field) : Kind::kOther;
      if (inner == Kind::kOther) {
        copy(begin, next, out);
      } else {
        std::string content;
        if (inner == Kind::kTensor)
          tensor(next, content);
        else
          message(inner, next, content);
        put_bytes(out, field, content);
      }
      at_ = next;
    }
  }

  uint64_t content_length(uint32_t wire, uint64_t end) {
    switch (wire) {
      case 0: {
        const uint64_t begin = at_;
        varint(end);
        const uint64_t n = at_ - begin;
        at_ = begin;
        return n;
      }
      case 1:
        return 8;
      case 2:
        return varint(end);
      case 5:
        return 4;
      default:
        throw Malformed{};
    }
  }

  void tensor(uint64_t end, std::string& out) {
    const uint64_t begin = at_;
    uint64_t data = 0, bytes = 0;
    int raw = 0;
    bool plain = true;
    while (at_ < end) {
      const uint64_t start = at_, tag = varint(end);
      const auto field = uint32_t(tag >> 3);
      if (tag > UINT32_MAX || field == 0) throw Malformed{};
      const uint64_t length = content_length(uint32_t(tag & 7), end);
      if (length > end - at_) throw Malformed{};
      if (field == kTensorRaw && (tag & 7) == 2) {
        ++raw;
        data = at_;
        bytes = length;
      } else {
        plain = plain && goes_with_lifted(field);
        if (plain) copy(start, at_ + length, out);
      }
      at_ += length;
    }
    if (!plain || raw != 1 || bytes < kLarge) {  // as it stands in the file
      out.clear();
      copy(begin, end, out);
      return;
    }
    lift(data, bytes);
    put_varint(out, kTensorLocation << 3);
    put_varint(out, 1);  // EXTERNAL
    put_entry(out, "location", lifted_location(lifted_.size() - 1));
    put_entry(out, "length", std::to_string(bytes));
  }

  void lift(uint64_t at, uint64_t bytes) {
    std::shared_ptr<FileRange> from;
    if (!m_.file.path.empty()) {
      from = std::make_shared<FileRange>(m_.file);
      from->offset = at;
      from->bytes = bytes;
    }
    std::shared_ptr<void> block = allocate_lasting(size_t(bytes), std::move(from));
    fills_.push_back({block.get(), size_t(bytes),
                      [&m = m_, at](size_t k, void* out, size_t n) { m.read(at + k, out, n); }});
    lifted_.push_back({std::move(block), size_t(bytes)});
  }

  const MessageBytes& m_;
  std::vector<LiftedTensor>& lifted_;
  std::vector<Fill> fills_;  // of lifted_
  uint64_t at_ = 0;
  std::string window_;
  uint64_t from_ = 0;  // of the window
};

}  // namespace

std::string lifted_location(size_t k) { return kMark + std::to_string(k); }

int64_t lifted_index(const std::string& location) {
  if (location.size() < 2 || location.size() > 10 || location[0] != kMark) return -1;
  int64_t k = 0;
  for (char c : location.substr(1)) {
    if (c < '0' || c > '9') return -1;
    k = k * 10 + (c - '0');
  }
  return k;
}

std::optional<std::string> lift_tensors(const MessageBytes& message,
                                        std::vector<LiftedTensor>& lifted) {
  if (message.size < kLarge) return std::nullopt;
  try {
    return Lifter(message, lifted).run();
  } catch (const Malformed&) {
    lifted.clear();
    return std::nullopt;
  }
}

}  // namespace onnxtrain
