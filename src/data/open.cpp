// Finds out what kind of data a path is.
#include "data/open.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "core/file_kind.hpp"
#include "core/memory.hpp"
#include "core/shell.hpp"
#include "data/arrays/idx.hpp"
#include "data/arrays/inflate.hpp"
#include "data/arrays/npy.hpp"
#include "data/arrays/safetensors.hpp"
#include "data/image_files.hpp"
#include "data/image_table.hpp"
#include "data/images.hpp"
#include "data/synthetic.hpp"
#include "data/table/foreign_table.hpp"

namespace onnxtrain {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kCsvGzFloor = uint64_t(64) << 20;  // a small .csv.gz may become this large

enum class Kind { kParquet, kNpy, kNpz, kIdx, kSafetensors, kCsv, kCsvGz, kUnknown };

bool is_text(std::string_view head) {
  return std::none_of(head.begin(), head.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u == 127 || (u < 32 && u != '\n' && u != '\r' && u != '\t');
  });
}

// Formats that people will try, so that the message can name them.
std::string other_format(std::string_view head, const std::string& path) {
  if (head.starts_with("\x89HDF")) return "HDF5";
  if (head.starts_with("\x89PNG") || head.starts_with("\xFF\xD8\xFF")) return "an image";
  if (head.size() > 1 && head[0] == '\x80' && head[1] > 0 && head[1] < 6)
    return "a Python pickle, which is never loaded";
  const std::string what = describe(file_kind_of(path));
  return what.empty() ? "unknown" : what;
}

// Text that is no table.
void refuse_pages(const std::string& path) {
  const FileKind kind = file_kind_of(path);
  if (kind == FileKind::kLfsPointer)
    data_error("OT2102", cat("'", path, "' is ", describe(kind)),
               cat("in its repository: git lfs pull --include ", shell_word(path)));
  if (kind == FileKind::kHtml)
    data_error("OT2102", cat("'", path, "' is ", describe(kind), ", not a table"),
               "download the file itself: the address leads to a page about it");
  if (kind == FileKind::kJson)
    data_error(
        "OT2102", cat("'", path, "' is ", describe(kind), ", not a table"),
        cat("write it as csv, in Python: pandas.read_json(path",
            path.ends_with(".json") ? "" : ", lines=True", ").to_csv('data.csv', index=False)"));
}

// How a table in another format becomes one that is known.
std::string table_advice(const std::string& path) {
  const std::string file = shell_word(path), save = ".to_csv('data.csv', index=False)";
  switch (file_kind_of(path)) {
    case FileKind::kExcel:
      return cat("save the sheet as csv, there or in Python: pandas.read_excel(path)", save);
    case FileKind::kDatabase:
      return cat("write a table as csv:  sqlite3 -header -csv ", file,
                 " 'select * from TABLE' >data.csv");
    case FileKind::kColumnar:
      return cat("in Python: pandas.read_feather(path)", save);
    case FileKind::kMatlab:
      return "in Python: numpy.savez('data.npz', **{k: v for k, v in "
             "scipy.io.loadmat(path).items() if k[0] != '_'})";
    case FileKind::kHdf5:
      return cat("in Python: pandas.read_hdf(path)", save, ", or h5py and numpy.savez");
    case FileKind::kZip:
      return cat("unpack it first:  unzip ", file);
    case FileKind::kTar:
    case FileKind::kCompressed:
      return cat("unpack it first:  ", unpacking_command(file));
    default:
      return {};
  }
}

Kind kind_of_gzip(const InputFile& file) {
  InflateStream stream(file, 0, file.size(), InflateStream::Format::kGzip);
  std::string inner(512, '\0');
  inner.resize(stream.read(inner.data(), inner.size()));
  if (looks_like_idx(inner)) return Kind::kIdx;
  return is_text(inner) ? Kind::kCsvGz : Kind::kUnknown;
}

Kind kind_of(const InputFile& file, std::string& head) {
  head.assign(size_t(std::min<uint64_t>(file.size(), 512)), '\0');
  file.read_at(0, head.data(), head.size());
  if (head.starts_with("PAR1")) return Kind::kParquet;
  if (head.starts_with("\x93NUMPY")) return Kind::kNpy;
  if (head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06")) return Kind::kNpz;
  if (head.starts_with("\x1F\x8B")) return kind_of_gzip(file);
  if (looks_like_idx(head)) return Kind::kIdx;
  if (looks_like_safetensors(head, file.size())) return Kind::kSafetensors;
  if (head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF")) return Kind::kCsv;  // says so
  return is_text(head) ? Kind::kCsv : Kind::kUnknown;
}

// A table, or the images that it names.
Dataset open_table(std::string_view text, const std::string& path, const OpenOptions& options) {
  if (std::optional<Dataset> images = open_image_table(text, path, options)) return *images;
  return parse_csv(text, path, options.csv);
}

Dataset open_text(const std::string& path, const OpenOptions& options, bool gzip) {
  const InputFile file(path, ErrorKind::kData);
  const Tensor bytes = gzip ? gunzip(file, std::max(kCsvGzFloor, file.size() * 100))
                            : read_tensor(file, 0, DType::kUint8, {int64_t(file.size())}, false);
  return open_table({reinterpret_cast<const char*>(bytes.as<uint8_t>()), size_t(bytes.size())},
                    path, options);
}

Dataset open_file(const std::string& path, const OpenOptions& options) {
  std::string head;
  Kind kind;
  {
    const InputFile file(path, ErrorKind::kData);
    if (file.size() == 0)
      data_error("OT2101", cat("'", path, "' is empty"), "copy or write the file again");
    kind = kind_of(file, head);
    // without a mark only the user, or the run, knows that these zero bytes are of a text
    if (kind == Kind::kUnknown &&
        (is_utf16_encoding(options.csv.encoding) || is_utf16_encoding(options.csv.usual_encoding)))
      kind = Kind::kCsv;
    if (kind == Kind::kCsv) refuse_pages(path);
    // text under the name of another format is that format damaged, not a table
    const std::string ext = fs::path(path).extension().string();
    if (kind == Kind::kCsv && (ext == ".npy" || ext == ".npz" || ext == ".safetensors"))
      data_error("OT2102", cat("'", path, "' is named ", ext, " but does not begin like one"),
                 "copy or write the file again; a table of text is named .csv or .tsv");
  }
  if ((kind == Kind::kUnknown || kind == Kind::kCsv) && is_image_name(path))
    return open_image(path, options);
  // a zip archive of something else than arrays
  if (kind == Kind::kNpz)
    if (const std::string advice = table_advice(path); !advice.empty())
      data_error("OT2102", cat("'", path, "' is ", describe(file_kind_of(path)), ", not arrays"),
                 advice);
  switch (kind) {
    case Kind::kParquet: {
      Dataset d = open_table(foreign_table_as_csv(path), path, options);
      if (d.is_table()) d.set_format("parquet");
      return d;
    }
    case Kind::kNpz:
      return open_npz(path, options.part);
    case Kind::kIdx:
      return open_idx_file(path);
    case Kind::kSafetensors:
      return open_safetensors(path, options.part);
    case Kind::kCsv:
      return open_text(path, options, false);
    case Kind::kCsvGz:
      return open_text(path, options, true);
    case Kind::kNpy: {
      Dataset d(path, "npy");
      const std::string stem = fs::path(path).stem().string();
      d.add(stem, open_npy(path));
      return d;
    }
    case Kind::kUnknown:
      break;
  }
  const std::string advice = table_advice(path);
  data_error(
      "OT2102", cat("'", path, "' is in no known data format (", other_format(head, path), ")"),
      !advice.empty()
          ? advice
          : "known are npy, npz, safetensors, idx, csv, tsv and parquet; numpy.savez('data.npz', "
            "x=x, y=y) "
            "writes one");
}

// Every x.npy, y.npy, x_train.npy ... of the folder is a column.
Dataset open_npy_folder(const std::string& folder, const std::vector<std::string>& files,
                        DataPart part) {
  std::vector<std::string> stems;
  for (const std::string& file : files) stems.push_back(fs::path(file).stem().string());
  Dataset d(folder, "npy");
  for (const auto& [column, stem] : select_part(stems, part, folder)) {
    d.add_array(column, open_npy(folder + "/" + stem + ".npy"));
    d.set_of_part(column != stem);
  }
  return d;
}

// One data file, or train.* and test.*
Dataset open_single(const std::string& folder, const std::vector<std::string>& files,
                    const OpenOptions& options) {
  std::vector<std::string> chosen = files;
  if (files.size() > 1) {
    const bool test = options.part == DataPart::kTest;
    chosen.clear();
    for (const std::string& f : files)
      if (f.starts_with(test ? "test" : "train")) chosen.push_back(f);
  }
  if (chosen.size() != 1)
    data_error("OT2102", cat("'", folder, "' holds several data files: ", listed(files)),
               cat("name one of them: --data ", folder, "/", files[0]));
  Dataset d = open_file(folder + "/" + chosen[0], options);
  d.set_of_part(files.size() > 1);
  return d;
}

Dataset open_folder(std::string folder, const OpenOptions& options) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  Dataset d;
  if (open_idx_folder(folder, options.part, d)) return d;
  std::vector<std::string> npy, single, all;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".") || !entry.is_regular_file()) continue;
    all.push_back(name);
    const std::string ext = entry.path().extension().string();
    if (ext == ".npy")
      npy.push_back(name);
    else if (ext == ".npz" || ext == ".safetensors" || ext == ".csv" || ext == ".tsv" ||
             ext == ".parquet" || name.ends_with(".csv.gz") || name.ends_with(".tsv.gz"))
      single.push_back(name);
  }
  for (auto* names : {&npy, &single, &all}) std::sort(names->begin(), names->end());
  if (!npy.empty() && single.empty()) return open_npy_folder(folder, npy, options.part);
  if (!single.empty()) return open_single(folder, single, options);
  if (open_image_folder(folder, options, d)) return d;
  data_error("OT2102",
             cat("'", folder, "' holds no data that is known; files there: ", listed(all)),
             "known are MNIST's idx files, npy, npz, safetensors, csv, tsv, and one subfolder of "
             "images per class");
}

// A table that comes through a pipe.
Dataset read_standard_input(const OpenOptions& options) {
  std::string text;
  std::vector<char> piece(size_t(1) << 20);
  while (const size_t n = std::fread(piece.data(), 1, piece.size(), stdin)) {
    text.append(piece.data(), n);
    if (text.size() > memory_limit() / 4)
      data_error("OT2101", "standard input has more text than a quarter of the memory limit",
                 "write it to a file and name that:  --data FILE");
  }
  if (text.empty())
    data_error("OT2101", "standard input is empty", "cat new.csv | onnxtrain predict RUN --data -");
  Dataset d = open_table(text, "standard input", options);
  d.set_source("-");
  return d;
}

// A part that was asked for and is not there must not be other rows in silence.
void require_part(const Dataset& d, const std::string& spec, const OpenOptions& options) {
  if (!options.part_asked || d.of_part()) return;
  const char* part = options.part == DataPart::kTest ? "test" : "train";
  usage_error("OT2194",
              cat("'", spec, "' has no parts: ", options.part_option, part,
                  " chooses between training and test data in one source"),
              cat("leave ", options.part_option, "out: all rows are taken"));
}

}  // namespace

Dataset open_dataset(const std::string& spec, const OpenOptions& options) {
  constexpr std::string_view kSynthetic = "synthetic:";
  std::error_code ignored;
  Dataset d;
  if (spec.starts_with(kSynthetic)) {
    d = make_synthetic(spec.substr(kSynthetic.size()), options.part, options.x_shape,
                       options.classes);
    d.set_of_part(true);
    return d;
  }
  if (spec == "-") {
    require_part(d, spec, options);
    return read_standard_input(options);
  }
  try {
    d = fs::is_directory(spec, ignored) ? open_folder(spec, options) : open_file(spec, options);
  } catch (const fs::filesystem_error& e) {
    data_error("OT4001", cat("cannot read '", spec, "': ", e.code().message()),
               "look at its permissions:  ls -l");
  }
  if (d.rows() == 0)
    for (const std::string& name : d.columns()) d.column(name);  // unreadable: says why
  if (d.rows() == 0)
    data_error("OT2101", cat("data '", spec, "' has no rows"),
               "save at least one example; was the array cut or filtered too far?");
  require_part(d, spec, options);
  if (!d.is_table() && d.targets().empty() && !options.csv.of_run) {
    const auto refuse = [&](const char* flag, const std::string& fix) {
      usage_error(
          "OT2116",
          cat("'", spec, "' is ", d.format(), ": ", flag, " names a column of csv or tsv data"),
          fix);
    };
    if (!options.csv.targets.empty())
      refuse("--target",
             cat("say which array feeds which input:  --map INPUT=", options.csv.targets[0]));
    if (!options.csv.drop.empty()) refuse("--drop", "arrays that no input takes are left out");
    for (const auto& [flag, given] : {std::pair{"--encoding", !options.csv.encoding.empty()},
                                      std::pair{"--separator", options.csv.separator != 0}})
      if (given)
        usage_error("OT2116",
                    cat("'", spec, "' is ", d.format(), ": ", flag, " is about csv and tsv data"),
                    cat("leave ", flag, " out"));
  }
  if (options.images.skip_bad && d.format() != "images")
    d.add_note("--skip-bad is for images: there are none");
  d.set_source(spec);
  return d;
}

}  // namespace onnxtrain
