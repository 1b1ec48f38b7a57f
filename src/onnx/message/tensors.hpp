// TensorProto <-> Tensor and TypeProto <-> TypeInfo. Internal to onnx/.
#pragma once
#include <memory>
#include <string>

#include "core/tensor.hpp"
#include "graph/type.hpp"
#include "onnx/message/source.hpp"

namespace onnxtrain {

// How tensors of a message are read.
struct TensorContext {
  std::shared_ptr<ModelSource> source;  // limits, external files; owner of aliased memory
  bool alias = true;                    // false: the message does not live in `source`: copy
};

// The one gate every tensor passes (docs/safety.md, 1): element type, rank, dimensions, and that
// the bytes present are the bytes declared. Nothing is allocated. Throws a model error
// OT1010-OT1012.
struct TensorHeader {
  DType dtype;
  Shape shape;
  int64_t count;
};
TensorHeader check_tensor(const onnx::TensorProto& p, const LoadLimits& limits);
// Values and indices of a sparse tensor: counts, order and range.
TensorHeader check_sparse(const onnx::SparseTensorProto& p, const LoadLimits& limits);

Tensor read_tensor(const onnx::TensorProto& p, const TensorContext& c);
// A tensor whose data lies in another file.
Tensor read_external(const onnx::TensorProto& p, const ModelSource& source);
Tensor read_sparse_as_dense(const onnx::SparseTensorProto& p, const TensorContext& c);
std::shared_ptr<SparseTensor> read_sparse(const onnx::SparseTensorProto& p, const TensorContext& c);

// Sets type, dims and data; other fields (name, documentation) are left alone.
void write_tensor(const Tensor& t, onnx::TensorProto& p);
// The tensor's bytes as the file holds them (4- and 2-bit types packed); strings are refused.
std::string packed_bytes(const Tensor& t);
// How many bytes that are; equal to Tensor::bytes() when memory and file look the same.
size_t packed_bytes_size(const Tensor& t);

TypeInfo read_type(const onnx::TypeProto& p);
void write_type(const TypeInfo& t, onnx::TypeProto& p);
// What both say together; `inferred` wins where they contradict each other.
TypeInfo merge_types(const TypeInfo& inferred, const TypeInfo& declared);

}  // namespace onnxtrain
