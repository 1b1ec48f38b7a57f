// A protobuf file as a list of pieces: weights are written from where they are, never copied into
// a message first. Internal to onnx/.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.hpp"
#include "onnx/onnx_pb.h"

namespace onnxtrain {

class Pieces {
 public:
  void add(std::string bytes);
  // The memory must live until the pieces are written; `owner` may help with that.
  void add_view(std::string_view bytes, std::shared_ptr<void> owner = nullptr);
  void add(Pieces&& other);
  // A length-delimited field: tag, length, content.
  void add_field(int number, Pieces&& content);
  uint64_t size() const { return size_; }
  template <class F>
  void each(F&& f) const {
    for (const Piece& p : pieces_) f(p.view.data() == nullptr ? std::string_view(p.bytes) : p.view);
  }

 private:
  struct Piece {
    std::string bytes;
    std::string_view view;
    std::shared_ptr<void> owner;
  };
  std::vector<Piece> pieces_;
  uint64_t size_ = 0;
};

// An initializer to be written: everything but large data is in `proto`.
struct TensorOut {
  onnx::TensorProto proto;
  Tensor tensor;         // its raw_data, when defined
  std::string_view raw;  // or a view into the source's message
  bool was_external = false;
  uint64_t data_bytes() const { return tensor.defined() ? tensor.bytes() : raw.size(); }
};

// A graph to be written: `proto` has no initializers, they follow.
struct GraphOut {
  onnx::GraphProto proto;
  std::vector<TensorOut> tensors;
};

Pieces to_pieces(TensorOut& t);
Pieces to_pieces(GraphOut& g);

}  // namespace onnxtrain
