// External data: files beneath the model's folder, read or mapped.
#include <unistd.h>

#include <cerrno>

#include "core/file.hpp"
#include "core/fill.hpp"
#include "onnx/message/source.hpp"

namespace onnxtrain {

int64_t lifted_number(const onnx::TensorProto& p) {
  if (p.data_location() != onnx::TensorProto_DataLocation_EXTERNAL) return -1;
  for (const auto& kv : p.external_data())
    if (kv.key() == "location") return lifted_index(kv.value());
  return -1;
}

void ExternalFiles::set_lifted(const std::vector<LiftedTensor>& tensors) {
  for (const LiftedTensor& t : tensors) lifted_.push_back({t.data, t.data, t.bytes});
}

void ExternalFiles::release_lifted() {
  for (Lifted& l : lifted_)
    if (l.kept.use_count() > 1) l.kept = nullptr;
}

namespace {
[[noreturn]] void no_data(const std::string& tensor) {
  model_error("OT1011", cat("tensor '", tensor, "' has no data"));
}
}  // namespace

ExternalFiles::Range ExternalFiles::lifted(int64_t k, const std::string& tensor) const {
  if (k < 0 || k >= int64_t(lifted_.size())) no_data(tensor);
  const Lifted& l = lifted_[size_t(k)];
  std::shared_ptr<void> data = l.data.lock();
  if (!data) no_data(tensor);
  return {data, static_cast<const char*>(data.get()), l.bytes};
}

ExternalFiles::File& ExternalFiles::file(const std::string& location,
                                         const std::string& tensor) const {
  if (auto it = files_.find(location); it != files_.end()) return it->second;
  try {
    File f;
    f.file = std::make_shared<InputFile>(open_beneath(base_dir_, location));
    return files_.emplace(location, std::move(f)).first->second;
  } catch (Error& e) {
    e.add_place(cat("for the external data of tensor '", tensor, "'"));
    throw;
  }
}

namespace {

std::shared_ptr<void> read_range(const InputFile& file, int64_t offset, int64_t length) {
  auto from = std::make_shared<FileRange>(describe_file(file.fd(), file.path()));
  from->offset = uint64_t(offset);
  from->bytes = uint64_t(length);
  std::shared_ptr<void> block = allocate_lasting(size_t(length), std::move(from));
  fill_all({{block.get(), size_t(length), [&](size_t at, void* out, size_t n) {
               file.read_at(uint64_t(offset) + at, out, n);
             }}});
  return block;
}

std::shared_ptr<MappedFile> map_again(const InputFile& file) {
  Fd fd(dup(file.fd()));
  if (!fd.valid()) io_error(ErrorKind::kModel, "OT4001", "open", file.path(), errno);
  return std::make_shared<MappedFile>(InputFile(std::move(fd), file.path(), ErrorKind::kModel));
}

}  // namespace

ExternalFiles::Range ExternalFiles::open(const std::string& location, int64_t offset,
                                         int64_t length, const std::string& tensor) const {
  if (const int64_t k = lifted_index(location); k >= 0) {
    Range r = lifted(k, tensor);
    if (offset != 0 || (length != 0 && size_t(length) != r.size)) no_data(tensor);
    return r;
  }
  if (base_dir_.empty())
    model_error("OT1011",
                cat("tensor '", tensor, "' lies in the external file '", location,
                    "', but the model has no folder"),
                "load the model from its file, or give the folder of its external data");
  File& f = file(location, tensor);
  const uint64_t size = f.file->size();
  if (uint64_t(offset) > size || uint64_t(length) > size - uint64_t(offset))
    model_error("OT1011",
                cat("tensor '", tensor, "' needs bytes ", offset, " to ", offset + length, " of '",
                    location, "', which has ", size),
                "the external file is cut short or belongs to another model");
  if (!is_mapped(size_t(length))) {
    std::weak_ptr<void>& known = f.read[{offset, length}];
    std::shared_ptr<void> block = known.lock();
    if (!block) known = block = read_range(*f.file, offset, length);
    return {block, static_cast<const char*>(block.get()), size_t(length)};
  }
  if (!f.mapped) f.mapped = map_again(*f.file);
  f.mapped->check_size();
  return {f.mapped, reinterpret_cast<const char*>(f.mapped->data()) + offset, size_t(length)};
}

}  // namespace onnxtrain
