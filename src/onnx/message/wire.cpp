// The little of protobuf's wire format that is needed to write large fields without copying.
#include "onnx/message/wire.hpp"

namespace onnxtrain {
namespace {

constexpr int kRawData = 9, kInitializer = 5;  // field numbers in TensorProto and GraphProto

std::string varint(uint64_t v) {
  std::string s;
  for (; v >= 128; v >>= 7) s.push_back(char(uint8_t(v) | 128));
  s.push_back(char(uint8_t(v)));
  return s;
}

}  // namespace

void Pieces::add(std::string bytes) {
  size_ += bytes.size();
  if (!pieces_.empty() && pieces_.back().view.data() == nullptr &&
      pieces_.back().bytes.size() < 4096)
    pieces_.back().bytes += bytes;  // keeps the number of pieces small
  else
    pieces_.push_back({std::move(bytes), {}, nullptr});
}

void Pieces::add_view(std::string_view bytes, std::shared_ptr<void> owner) {
  if (bytes.empty()) return;
  size_ += bytes.size();
  pieces_.push_back({{}, bytes, std::move(owner)});
}

void Pieces::add(Pieces&& other) {
  for (Piece& p : other.pieces_) {
    if (p.view.data() == nullptr)
      add(std::move(p.bytes));
    else
      add_view(p.view, std::move(p.owner));
  }
}

void Pieces::add_field(int number, Pieces&& content) {
  add(varint(uint64_t(number) << 3 | 2) + varint(content.size()));
  add(std::move(content));
}

Pieces to_pieces(TensorOut& t) {
  Pieces out;
  out.add(t.proto.SerializeAsString());
  Pieces data;
  if (t.tensor.defined())
    data.add_view({static_cast<const char*>(t.tensor.data()), t.tensor.bytes()}, t.tensor.owner());
  else
    data.add_view(t.raw);
  if (data.size() > 0) out.add_field(kRawData, std::move(data));
  return out;
}

Pieces to_pieces(GraphOut& g) {
  Pieces out;
  out.add(g.proto.SerializeAsString());
  for (TensorOut& t : g.tensors) out.add_field(kInitializer, to_pieces(t));
  return out;
}

}  // namespace onnxtrain
