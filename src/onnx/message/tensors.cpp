// TensorProto <-> Tensor for every element type.
#include "onnx/message/tensors.hpp"

#include <bit>
#include <cstring>
#include <limits>

namespace onnxtrain {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

namespace {

using onnx::TensorProto;

std::string label(const TensorProto& p) {
  return p.name().empty() ? "a tensor without a name" : cat("tensor '", p.name(), "'");
}

// Elements of a packed type per byte; 1 for the others.
int per_byte(DType t) {
  switch (t) {
    case DType::kUint4:
    case DType::kInt4:
    case DType::kFloat4E2M1:
      return 2;
    case DType::kUint2:
    case DType::kInt2:
      return 4;
    default:
      return 1;
  }
}

size_t file_bytes(DType t, int64_t count) {
  const int k = per_byte(t);
  return k == 1 ? size_t(count) * dtype_size(t) : (size_t(count) + size_t(k) - 1) / size_t(k);
}

// Number of entries the typed field must have, and has.
struct Entries {
  int64_t want, have;
  const char* field;
};
Entries typed_entries(const TensorProto& p, DType t, int64_t n) {
  switch (t) {
    case DType::kFloat:
      return {n, p.float_data_size(), "float_data"};
    case DType::kComplex64:
      return {2 * n, p.float_data_size(), "float_data"};
    case DType::kDouble:
      return {n, p.double_data_size(), "double_data"};
    case DType::kComplex128:
      return {2 * n, p.double_data_size(), "double_data"};
    case DType::kInt64:
      return {n, p.int64_data_size(), "int64_data"};
    case DType::kUint32:
    case DType::kUint64:
      return {n, p.uint64_data_size(), "uint64_data"};
    case DType::kString:
      return {n, p.string_data_size(), "string_data"};
    default:
      return {int64_t(file_bytes(t, n) / (per_byte(t) == 1 ? dtype_size(t) : 1)),
              p.int32_data_size(), "int32_data"};
  }
}

DType check_dtype(int type, const std::string& what) {
  if (type <= 0 || type >= kDTypeCount)
    model_error("OT1010",
                cat(what, " has the element type ", type, ", which ",
                    type == 27 || type == 28 ? "(float6) is not supported" : "is unknown"));
  return DType(type);
}

// Product of dimensions with every danger checked.
template <class Dims>
int64_t check_dims(const Dims& dims, size_t elem_bytes, const LoadLimits& limits,
                   const std::string& what, Shape& shape) {
  if (dims.size() > limits.rank)
    model_error("OT1003",
                cat(what, " has ", dims.size(), " dimensions; the limit is ", limits.rank));
  int64_t count = 1;
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0) model_error("OT1010", cat(what, " has the negative dimension ", d));
    shape.push_back(d);
    if (d == 0)
      empty = true;
    else if (__builtin_mul_overflow(count, d, &count) ||
             count > std::numeric_limits<int64_t>::max() / int64_t(elem_bytes) / 2)
      model_error("OT1010", cat(what, ": the product of its dimensions overflows"));
  }
  return empty ? 0 : count;
}

bool is_external(const TensorProto& p) {
  return p.data_location() == onnx::TensorProto_DataLocation_EXTERNAL;
}

[[noreturn]] void short_data(const TensorProto& p, const TensorHeader& h, int64_t have,
                             int64_t want, const char* unit) {
  model_error("OT1010",
              cat(label(p), " is declared ", dtype_name(h.dtype), to_string(h.shape),
                  " and must hold ", want, " ", unit, ", but holds ", have),
              "the file is damaged or was cut short; export it again");
}

struct External {
  std::string location;
  int64_t offset = 0, length = -1;
};

int64_t external_number(const TensorProto& p, const std::string& key, const std::string& text) {
  int64_t v = 0;
  bool good = !text.empty() && text.size() <= 18;
  for (char c : text) {
    good = good && c >= '0' && c <= '9';
    if (good) v = v * 10 + (c - '0');
  }
  if (!good)
    model_error("OT1011", cat(label(p), ": external data '", key, "' is not a number: '",
                              text.substr(0, 64), "'"));
  return v;
}

External external_info(const TensorProto& p) {
  External e;
  for (const auto& kv : p.external_data()) {
    if (kv.key() == "location")
      e.location = kv.value();
    else if (kv.key() == "offset")
      e.offset = external_number(p, "offset", kv.value());
    else if (kv.key() == "length")
      e.length = external_number(p, "length", kv.value());
  }
  if (e.location.empty())
    model_error("OT1011", cat(label(p), ": external data without a location"));
  return e;
}

void unpack(DType t, const uint8_t* bytes, int64_t n, uint8_t* out) {
  const int k = per_byte(t), bits = 8 / k;
  const bool is_signed = t == DType::kInt4 || t == DType::kInt2;
  for (int64_t i = 0; i < n; ++i) {
    const int shift = int(i % k) * bits;
    const uint8_t v = uint8_t((bytes[i / k] >> shift) & ((1 << bits) - 1));
    out[i] = is_signed ? uint8_t(int8_t(uint8_t(v << (8 - bits))) >> (8 - bits)) : v;
  }
}

// Bytes as in raw_data or an external file -> tensor; shares the memory when that is possible.
Tensor from_bytes(const TensorHeader& h, const char* data, std::shared_ptr<void> owner) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  const size_t align = h.dtype == DType::kComplex64    ? 4
                       : h.dtype == DType::kComplex128 ? 8
                                                       : dtype_size(h.dtype);
  bool share = owner != nullptr && per_byte(h.dtype) == 1 && address % align == 0 && h.count > 0;
  if (h.dtype == DType::kBool)  // any other byte would be undefined behaviour later
    for (int64_t i = 0; i < h.count && share; ++i) share = uint8_t(data[i]) <= 1;
  if (share) return Tensor(h.dtype, h.shape, const_cast<char*>(data), std::move(owner));
  Tensor t(h.dtype, h.shape);
  auto* out = static_cast<uint8_t*>(t.data());
  if (per_byte(h.dtype) > 1)
    unpack(h.dtype, reinterpret_cast<const uint8_t*>(data), h.count, out);
  else if (h.dtype == DType::kBool)
    for (int64_t i = 0; i < h.count; ++i) out[i] = data[i] != 0;
  else if (h.count > 0)
    std::memcpy(out, data, t.bytes());
  return t;
}

template <class Out, class Field>
void convert(const Field& field, Tensor& t) {
  auto* out = static_cast<Out*>(t.data());
  for (int64_t i = 0; i < t.size(); ++i) out[i] = Out(field.Get(int(i)));
}

Tensor from_fields(const TensorProto& p, const TensorHeader& h,
                   const std::shared_ptr<void>& owner) {
  auto plain = [&](const void* data) {
    return from_bytes(h, static_cast<const char*>(data), owner);
  };
  switch (h.dtype) {
    case DType::kFloat:
    case DType::kComplex64:
      return plain(p.float_data().data());
    case DType::kDouble:
    case DType::kComplex128:
      return plain(p.double_data().data());
    case DType::kInt64:
      return plain(p.int64_data().data());
    case DType::kUint64:
      return plain(p.uint64_data().data());
    case DType::kInt32:
      return plain(p.int32_data().data());
    default:
      break;
  }
  Tensor t(h.dtype, h.shape);
  if (h.dtype == DType::kString) {
    for (int64_t i = 0; i < h.count; ++i) t.as<std::string>()[i] = p.string_data(int(i));
  } else if (h.dtype == DType::kUint32) {
    convert<uint32_t>(p.uint64_data(), t);
  } else if (h.dtype == DType::kBool) {
    for (int64_t i = 0; i < h.count; ++i) t.as<bool>()[i] = p.int32_data(int(i)) != 0;
  } else if (per_byte(h.dtype) > 1) {
    std::string bytes(size_t(p.int32_data_size()), '\0');
    for (int i = 0; i < p.int32_data_size(); ++i) bytes[size_t(i)] = char(uint8_t(p.int32_data(i)));
    unpack(h.dtype, reinterpret_cast<const uint8_t*>(bytes.data()), h.count,
           static_cast<uint8_t*>(t.data()));
  } else if (dtype_size(h.dtype) == 2) {
    convert<uint16_t>(p.int32_data(), t);
  } else {
    convert<uint8_t>(p.int32_data(), t);
  }
  return t;
}

}  // namespace

TensorHeader check_tensor(const TensorProto& p, const LoadLimits& limits) {
  TensorHeader h{check_dtype(p.data_type(), label(p)), {}, 0};
  h.count = check_dims(p.dims(), dtype_size(h.dtype), limits, label(p), h.shape);
  if (p.has_segment())
    model_error("OT1010", cat(label(p), " is stored in segments, which ONNX no longer defines"));
  const Entries e = typed_entries(p, h.dtype, h.count);
  if (is_external(p)) {
    if (h.dtype == DType::kString)
      model_error("OT1011", cat(label(p), ": strings cannot be external data"));
    if (p.has_raw_data() || e.have > 0)
      model_error("OT1011", cat(label(p), " is external and also has data in the file"));
    const External x = external_info(p);
    if (x.length >= 0 && uint64_t(x.length) != file_bytes(h.dtype, h.count))
      short_data(p, h, x.length, int64_t(file_bytes(h.dtype, h.count)), "bytes");
    return h;
  }
  const int fields = (p.float_data_size() > 0) + (p.int32_data_size() > 0) +
                     (p.string_data_size() > 0) + (p.int64_data_size() > 0) +
                     (p.double_data_size() > 0) + (p.uint64_data_size() > 0);
  if (fields > 1 || (fields == 1 && p.has_raw_data() && !p.raw_data().empty()))
    model_error("OT1010", cat(label(p), " holds its data twice, in different fields"));
  if (p.has_raw_data() && fields == 0) {
    if (h.dtype == DType::kString && h.count > 0)
      model_error("OT1010", cat(label(p), ": strings cannot be raw_data"));
    const size_t want = h.dtype == DType::kString ? 0 : file_bytes(h.dtype, h.count);
    if (p.raw_data().size() != want)
      short_data(p, h, int64_t(p.raw_data().size()), int64_t(want), "bytes");
    return h;
  }
  if (fields == 1 && e.have == 0)
    model_error("OT1010", cat(label(p), " of type ", dtype_name(h.dtype), " must hold its data in ",
                              e.field));
  if (e.want != e.have) short_data(p, h, e.have, e.want, "entries");
  return h;
}

Tensor read_external(const TensorProto& p, const ModelSource& source) {
  const TensorHeader h = check_tensor(p, source.limits);
  const External x = external_info(p);
  // an absent length means "as much as the tensor needs"
  ExternalFiles::Range r =
      source.external.open(x.location, x.offset, int64_t(file_bytes(h.dtype, h.count)), p.name());
  return from_bytes(h, r.data, r.owner);
}

Tensor read_tensor(const TensorProto& p, const TensorContext& c) {
  const TensorHeader h = check_tensor(p, c.source->limits);
  std::shared_ptr<void> owner = c.alias ? std::static_pointer_cast<void>(c.source) : nullptr;
  Tensor t;
  if (is_external(p)) {
    t = read_external(p, *c.source);
    // what was read belongs to its readers alone: held here, it would be there twice in training
    const bool mapped = c.source->external.is_mapped(file_bytes(h.dtype, h.count));
    if (c.alias && !is_lifted(p) && mapped) c.source->converted[&p] = t;
    return t;
  }
  if (h.count == 0) {
    t = Tensor(h.dtype, h.shape);
  } else if (p.has_raw_data() && !p.raw_data().empty()) {
    t = from_bytes(h, p.raw_data().data(), owner);
  } else {
    t = from_fields(p, h, owner);
  }
  if (c.alias && t.owner().get() != c.source.get()) c.source->converted[&p] = t;
  return t;
}

size_t packed_bytes_size(const Tensor& t) { return file_bytes(t.dtype(), t.size()); }

std::string packed_bytes(const Tensor& t) {
  OT_ASSERT(t.dtype() != DType::kString);
  const int k = per_byte(t.dtype());
  if (k == 1) return std::string(static_cast<const char*>(t.data()), t.bytes());
  const auto* in = static_cast<const uint8_t*>(t.data());
  const int bits = 8 / k;
  std::string out(file_bytes(t.dtype(), t.size()), '\0');
  for (int64_t i = 0; i < t.size(); ++i)
    out[size_t(i / k)] =
        char(uint8_t(out[size_t(i / k)]) | ((in[i] & ((1 << bits) - 1)) << (int(i % k) * bits)));
  return out;
}

void write_tensor(const Tensor& t, TensorProto& p) {
  p.clear_segment();
  p.clear_float_data();
  p.clear_int32_data();
  p.clear_string_data();
  p.clear_int64_data();
  p.clear_double_data();
  p.clear_uint64_data();
  p.clear_raw_data();
  p.clear_external_data();
  p.clear_data_location();
  p.set_data_type(int(t.dtype()));
  p.clear_dims();
  for (int64_t d : t.shape()) p.add_dims(d);
  if (t.dtype() == DType::kString) {
    for (int64_t i = 0; i < t.size(); ++i) p.add_string_data(t.as<std::string>()[i]);
  } else if (per_byte(t.dtype()) == 1) {
    p.set_raw_data(t.data(), t.bytes());
  } else {
    p.set_raw_data(packed_bytes(t));
  }
}

TensorHeader check_sparse(const onnx::SparseTensorProto& p, const LoadLimits& limits) {
  const std::string what = cat("sparse ", label(p.values()));
  const TensorHeader values = check_tensor(p.values(), limits);
  TensorHeader h{values.dtype, {}, 0};
  h.count = check_dims(p.dims(), dtype_size(h.dtype), limits, what, h.shape);
  if (values.shape.size() != 1)
    model_error("OT1012", cat(what, ": values must have one dimension"));
  if (!p.has_indices() && values.count == 0) return h;
  const TensorHeader indices = check_tensor(p.indices(), limits);
  if (indices.dtype != DType::kInt64) model_error("OT1012", cat(what, ": indices must be int64"));
  const int64_t rank = int64_t(h.shape.size());
  const bool linear = indices.shape.size() == 1;
  if ((!linear && (indices.shape.size() != 2 || indices.shape[1] != rank)) ||
      indices.shape[0] != values.count)
    model_error("OT1012", cat(what, ": indices have the shape ", to_string(indices.shape), " for ",
                              values.count, " values of a tensor ", to_string(h.shape)));
  return h;
}

std::shared_ptr<SparseTensor> read_sparse(const onnx::SparseTensorProto& p,
                                          const TensorContext& c) {
  const TensorHeader h = check_sparse(p, c.source->limits);
  auto s = std::make_shared<SparseTensor>();
  s->values = read_tensor(p.values(), c);
  s->indices = p.has_indices() ? read_tensor(p.indices(), c) : Tensor(DType::kInt64, {0});
  s->shape = h.shape;
  return s;
}

Tensor read_sparse_as_dense(const onnx::SparseTensorProto& p, const TensorContext& c) {
  const TensorHeader h = check_sparse(p, c.source->limits);
  const std::string what = cat("sparse ", label(p.values()));
  const LoadLimits& limits = c.source->limits;
  if (int64_t(size_t(h.count) * dtype_size(h.dtype)) > limits.dense_bytes)
    model_error("OT1003", cat(what, " would take ", size_t(h.count) * dtype_size(h.dtype),
                              " bytes when dense; the limit is ", limits.dense_bytes));
  const std::shared_ptr<SparseTensor> parts = read_sparse(p, c);
  const Tensor &values = parts->values, &indices = parts->indices;
  Tensor t(h.dtype, h.shape);
  if (h.dtype != DType::kString && h.count > 0) std::memset(t.data(), 0, t.bytes());
  const int64_t rank = indices.rank() == 1 ? 1 : int64_t(h.shape.size());
  const Shape strides = strides_of(h.shape);
  const auto* index = indices.as<int64_t>();
  int64_t last = -1;
  for (int64_t k = 0; k < values.size(); ++k) {
    int64_t at = indices.rank() == 1 ? index[k] : 0;
    for (int64_t d = 0; d < rank && indices.rank() == 2; ++d) {
      const int64_t i = index[k * rank + d];
      if (i < 0 || i >= h.shape[size_t(d)])
        model_error("OT1012",
                    cat(what, ": index ", i, " is outside its dimensions ", to_string(h.shape)));
      at += i * strides[size_t(d)];
    }
    if (at < 0 || at >= h.count || at <= last)
      model_error("OT1012",
                  cat(what, ": index ", at, " is ",
                      at <= last && at >= 0 ? "not in ascending order" : "outside the tensor"));
    last = at;
    const size_t size = dtype_size(h.dtype);
    if (h.dtype == DType::kString)
      t.as<std::string>()[at] = values.as<std::string>()[k];
    else
      std::memcpy(static_cast<char*>(t.data()) + size_t(at) * size,
                  static_cast<const char*>(values.data()) + size_t(k) * size, size);
  }
  if (c.alias) c.source->densified[&p] = t;
  return t;
}

}  // namespace onnxtrain
