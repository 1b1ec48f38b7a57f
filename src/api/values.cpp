// The C API's values.
#include <algorithm>
#include <cstring>

#include "api/handles.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;

DType onnxtrain::api::checked_dtype(int dtype) {
  if (dtype <= 0 || dtype >= kDTypeCount)
    usage_error("OT1129", cat("there is no element type ", dtype));
  return DType(dtype);
}

Shape onnxtrain::api::checked_shape(int rank, const int64_t* dims) {
  if (rank < 0 || (rank > 0 && !dims))
    usage_error("OT1129", cat("a tensor of rank ", rank, " with ", dims ? "" : "no ", "sizes"));
  int64_t count = 1;
  for (int k = 0; k < rank; ++k)
    if (dims[k] < 0 || __builtin_mul_overflow(count, std::max<int64_t>(dims[k], 1), &count))
      usage_error("OT1129", cat("size ", dims[k], " of dimension ", k, " cannot be"));
  return Shape(dims, dims + rank);
}

namespace {

void check_items(size_t count, ot_value* const* items) {
  if (count > 0) check_needed({{"items", items}});
  for (size_t k = 0; k < count; ++k)
    if (!items[k]) usage_error("OT1129", cat("item ", k, " is NULL"));
}

const Tensor* tensor(const ot_value* v) { return v ? std::get_if<Tensor>(&v->v) : nullptr; }
const Sequence* sequence(const ot_value* v) {
  auto* s = v ? std::get_if<std::shared_ptr<Sequence>>(&v->v) : nullptr;
  return s ? s->get() : nullptr;
}
const MapValue* map(const ot_value* v) {
  auto* m = v ? std::get_if<std::shared_ptr<MapValue>>(&v->v) : nullptr;
  return m ? m->get() : nullptr;
}

}  // namespace

ot_status ot_value_tensor(int dtype, int rank, const int64_t* dims, void* data,
                          void (*release)(void*), void* context, ot_value** out) {
  return guarded({{"out", out}}, [&] {
    std::shared_ptr<void> owner(data, [release, context](void*) {
      if (release) release(context);
    });
    const DType type = checked_dtype(dtype);
    if (type == DType::kString) usage_error("OT1129", "strings are made with ot_value_strings");
    Tensor t(type, checked_shape(rank, dims), data, std::move(owner));
    if (t.size() > 0) check_needed({{"data", data}});
    *out = new ot_value{std::move(t)};
  });
}

ot_status ot_value_tensor_copy(int dtype, int rank, const int64_t* dims, const void* data,
                               ot_value** out) {
  return guarded({{"out", out}}, [&] {
    const DType type = checked_dtype(dtype);
    if (type == DType::kString) usage_error("OT1129", "strings are made with ot_value_strings");
    const Shape shape = checked_shape(rank, dims);
    if (num_elements(shape) > 0) check_needed({{"data", data}});
    Tensor t(type, shape);
    if (t.bytes()) std::memcpy(t.data(), data, t.bytes());
    *out = new ot_value{t};
  });
}

ot_status ot_value_strings(int rank, const int64_t* dims, const char* const* strings,
                           const size_t* sizes, ot_value** out) {
  return guarded({{"out", out}}, [&] {
    Tensor t(DType::kString, checked_shape(rank, dims));
    if (t.size() > 0) check_needed({{"strings", strings}});
    for (int64_t k = 0; k < t.size(); ++k) {
      if (!strings[k]) usage_error("OT1129", cat("string ", k, " is NULL"));
      t.as<std::string>()[k] = sizes ? std::string(strings[k], sizes[k]) : std::string(strings[k]);
    }
    *out = new ot_value{t};
  });
}

ot_status ot_value_sequence(size_t count, ot_value* const* items, int elem_dtype, ot_value** out) {
  return guarded({{"out", out}}, [&] {
    check_items(count, items);
    auto s = std::make_shared<Sequence>();
    s->elem = elem_dtype > 0 ? checked_dtype(elem_dtype) : DType::kUndefined;
    for (size_t k = 0; k < count; ++k) {
      s->items.push_back(items[k]->v);
      if (const Tensor* t = tensor(items[k]); t && s->elem == DType::kUndefined)
        s->elem = t->dtype();
    }
    *out = new ot_value{s};
  });
}

ot_status ot_value_none(ot_value** out) {
  return guarded({{"out", out}}, [&] { *out = new ot_value{Value()}; });
}

ot_status ot_value_map(size_t count, const int64_t* int_keys, const char* const* string_keys,
                       ot_value* const* items, ot_value** out) {
  return guarded({{"out", out}}, [&] {
    check_items(count, items);
    if (count > 0 && !int_keys) check_needed({{"string_keys", string_keys}});
    auto m = std::make_shared<MapValue>();
    if (int_keys) {
      std::map<int64_t, Value> v;
      for (size_t k = 0; k < count; ++k) v[int_keys[k]] = items[k]->v;
      m->items = std::move(v);
    } else {
      std::map<std::string, Value> v;
      for (size_t k = 0; k < count; ++k) v[string_keys[k]] = items[k]->v;
      m->items = std::move(v);
    }
    *out = new ot_value{m};
  });
}

void ot_value_free(ot_value* v) { delete v; }

ot_kind ot_value_kind(const ot_value* v) { return v ? ot_kind(v->v.index()) : OT_NONE; }
int ot_value_dtype(const ot_value* v) {
  if (const Tensor* t = tensor(v)) return int(t->dtype());
  if (const Sequence* s = sequence(v)) return int(s->elem);
  return 0;
}
int ot_value_rank(const ot_value* v) { return tensor(v) ? int(tensor(v)->rank()) : 0; }
const int64_t* ot_value_dims(const ot_value* v) {
  return tensor(v) ? tensor(v)->shape().data() : nullptr;
}
void* ot_value_data(const ot_value* v) {
  return tensor(v) ? const_cast<void*>(tensor(v)->data()) : nullptr;
}
size_t ot_value_bytes(const ot_value* v) { return tensor(v) ? tensor(v)->bytes() : 0; }

const char* ot_value_string(const ot_value* v, size_t index, size_t* size) {
  const Tensor* t = tensor(v);
  if (!t || t->dtype() != DType::kString || index >= size_t(t->size())) return nullptr;
  const std::string& s = t->as<std::string>()[index];
  if (size) *size = s.size();
  return s.c_str();
}

size_t ot_value_count(const ot_value* v) {
  if (const Tensor* t = tensor(v)) return size_t(t->size());
  if (const Sequence* s = sequence(v)) return s->items.size();
  if (const MapValue* m = map(v))
    return std::visit([](const auto& x) { return x.size(); }, m->items);
  return 0;
}

ot_status ot_value_item(const ot_value* v, size_t index, ot_value** out) {
  return guarded({{"v", v}, {"out", out}}, [&] {
    if (index >= ot_value_count(v)) usage_error("OT1129", cat("there is no item ", index));
    if (const Sequence* s = sequence(v)) {
      *out = new ot_value{s->items[index]};
    } else if (const MapValue* m = map(v)) {
      *out = std::visit(
          [&](const auto& x) { return new ot_value{std::next(x.begin(), long(index))->second}; },
          m->items);
    } else {
      usage_error("OT1129", "only sequences and maps have items");
    }
  });
}

int ot_value_key(const ot_value* v, size_t index, int64_t* i, const char** s) {
  const MapValue* m = map(v);
  if (!m || index >= ot_value_count(v)) return 0;
  if (auto* ints = std::get_if<std::map<int64_t, Value>>(&m->items)) {
    *i = std::next(ints->begin(), long(index))->first;
    return 1;
  }
  *s = std::next(std::get<std::map<std::string, Value>>(m->items).begin(), long(index))
           ->first.c_str();
  return 0;
}

ot_status ot_value_sparse_parts(const ot_value* v, ot_value** values, ot_value** indices) {
  return guarded({{"v", v}, {"values", values}, {"indices", indices}}, [&] {
    auto* s = std::get_if<std::shared_ptr<SparseTensor>>(&v->v);
    if (!s) usage_error("OT1129", "not a sparse tensor");
    *values = new ot_value{(*s)->values};
    *indices = new ot_value{(*s)->indices};
  });
}
