// A table whose rows are images.
#include "data/image_table.hpp"

#include <algorithm>
#include <filesystem>

#include "core/shell.hpp"
#include "data/image_files.hpp"
#include "data/images.hpp"
#include "data/table/table_profile.hpp"

namespace onnxtrain {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// Does the second line hold the name of an image? Most tables do not, and are not read for it.
bool may_name_images(std::string_view text, const std::string& path, const CsvOptions& options) {
  std::string store;
  text = csv_utf8(text, path, csv_encoding(text, options), store);
  CsvReader reader(text, options.separator != 0 ? options.separator : sniff_separator(text), path);
  std::vector<std::string_view> fields;
  for (int line = 0; line < 2 && reader.next(fields); ++line)
    if (std::any_of(fields.begin(), fields.end(),
                    [](std::string_view f) { return is_image_name(std::string(csv_trimmed(f))); }))
      return true;
  return false;
}

bool names_images(const ColumnProfile& p) {
  return p.kind == CsvColumn::Kind::kText && p.rows > p.missing && !p.texts.empty() &&
         std::all_of(p.texts.begin(), p.texts.end(),
                     [](const auto& t) { return is_image_name(t.first); });
}

// The column that names the images; "" when there is none. others: those that nothing is learnt
// from.
std::string column_of_images(const TableProfile& table, const std::string& path,
                             const OpenOptions& options, Names& others) {
  Names found;
  for (const ColumnProfile& p : table.columns) (names_images(p) ? found : others).push_back(p.name);
  if (found.size() > 1 && (options.images.wanted || others.empty()))
    data_error("OT2207",
               cat("the columns ", listed(found), " of '", path,
                   "' name images, and the model takes one image per row"),
               cat("leave the others out:  --drop ", shell_word(found[1])));
  return found.size() == 1 ? found[0] : std::string();
}

// "a.png", below the folder; the sign between folders may be that of another system.
std::string path_of(const std::string& folder, std::string name) {
  std::error_code ec;
  auto below = [&](const std::string& n) { return (fs::path(folder) / n).string(); };
  if (name.find('\\') != std::string::npos && !fs::exists(below(name), ec))
    std::replace(name.begin(), name.end(), '\\', '/');
  return below(name);
}

Names paths_in(const Dataset& table, const std::string& column, const std::string& folder) {
  const Tensor names = table.gather_all(column);
  Names paths;
  for (int64_t r = 0; r < names.size(); ++r) {
    const std::string& name = names.as<std::string>()[r];
    if (name.empty())
      data_error("OT2121",
                 cat("a value is missing: row ", r + 1, " of '", table.source(), "', column '",
                     column, "'"),
                 "fill in the name of the image, or remove the row");
    paths.push_back(path_of(folder, name));
  }
  return paths;
}

// Files that are not there; a damaged one is found when it is read.
void require_images(const Names& paths, const std::string& column, const std::string& source,
                    const OpenOptions& options) {
  Names gone;
  std::error_code ec;
  for (const std::string& p : paths)
    if (!fs::exists(p, ec)) gone.push_back(p);
  if (gone.empty() || (options.images.skip_bad && gone.size() < paths.size())) return;
  data_error("OT2207",
             cat(gone.size() == paths.size() ? "none" : cat(gone.size()), " of the ", paths.size(),
                 " images that column '", column, "' of '", source,
                 gone.size() == paths.size() ? "' names is there: " : "' names are not there: ",
                 listed(gone, 3)),
             gone.size() == paths.size() ? "say where the images lie:  --images FOLDER"
                                         : "copy them there, or go on without them:  --skip-bad");
}

// Rows of damaged images.
void leave_out_bad(const std::string& path, Names& paths, Dataset& table) {
  Names bad, kept;
  const std::vector<char> readable = readable_images(paths, bad);
  if (bad.empty()) return;
  if (bad.size() == paths.size()) none_readable(path, bad);
  std::vector<int64_t> rows;
  for (size_t k = 0; k < paths.size(); ++k) {
    if (readable[k] == 0) continue;
    rows.push_back(int64_t(k));
    kept.push_back(paths[k]);
  }
  table = table.subset(rows);
  table.add_note(skipped_note(bad, paths.size()));
  paths = std::move(kept);
}

// The targets of the table beside the images.
void add_targets(const Dataset& table, Dataset& images) {
  for (const std::string& name : table.columns()) {
    const bool named = std::count(table.targets().begin(), table.targets().end(), name) != 0;
    if (name != table.target_column() && !named) continue;
    images.add(name, table.column(name));
    images.set_class_names(name, table.class_names(name));
  }
  images.set_targets(table.targets(), table.target_column());
  images.set_target_forms(table.target_forms());
}

}  // namespace

std::optional<Dataset> open_image_table(std::string_view text, const std::string& path,
                                        const OpenOptions& options) {
  if (!options.csv.columns.empty() || !may_name_images(text, path, options.csv)) return {};
  TableProfile profile;
  OpenOptions here = options;
  here.csv.profile = &profile;
  here.csv.features.clear();
  here.csv.no_target = true;
  parse_csv(text, path, here.csv);
  Names others;
  const std::string column = column_of_images(profile, path, options, others);
  if (column.empty()) return {};
  here.csv = options.csv;
  here.csv.profile = nullptr;
  here.csv.features = {column};
  CsvColumn names;
  names.kind = CsvColumn::Kind::kText;
  names.name = column;
  here.csv.columns = {names};
  Dataset table = parse_csv(text, path, here.csv);
  std::erase_if(others, [&](const std::string& name) {
    return std::count(table.targets().begin(), table.targets().end(), name) != 0;
  });
  const bool alone = others.empty() && options.csv.features.empty();
  if (!options.images.wanted && !alone) return {};
  std::string folder =
      options.images.folder.empty() ? fs::path(path).parent_path().string() : options.images.folder;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  Names paths = paths_in(table, column, folder);
  require_images(paths, column, path, options);
  if (options.images.skip_bad) leave_out_bad(path, paths, table);
  const bool below = std::all_of(paths.begin(), paths.end(), [&](const std::string& p) {
    return p.starts_with(folder + "/");  // not the path of a whole name: /data/a.png
  });
  Dataset images = images_at(path, paths, options, true, below ? folder : std::string());
  images.add_note(cat("column '", column, "' names the images, below '",
                      folder.empty() ? "." : folder, "'   (--images FOLDER to change)"));
  if (!others.empty() && !options.csv.of_run)
    images.add_note(cat("not used: ", listed(others), "   (what is learnt from is the images)"));
  for (const std::string& note : table.notes()) images.add_note(note);
  add_targets(table, images);
  images.set_dropped(table.dropped());
  images.set_reading(table.reading());
  return images;
}

}  // namespace onnxtrain
