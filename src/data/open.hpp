// From what the user typed after --data to a dataset, and from columns to the model's inputs.
#pragma once
#include <map>

#include "data/columns/dataset.hpp"
#include "data/table/csv.hpp"

namespace onnxtrain {

struct ImageReading {
  // How an image gets the size: stretch, crop (its middle), pad (with 0); as ImageRule::resize.
  std::string resize = "stretch";
  bool skip_bad = false;  // damaged images are left out with a note, not an error
  // The model takes images: a table with a column of file names stands for them.
  bool wanted = false;
  std::string folder;  // of the images that a table names; empty: that of the table
  // Float32 from 0 to 255: what resizing gives, not rounded to bytes.
  bool numbers = false;
};

struct OpenOptions {
  DataPart part = DataPart::kTrain;
  bool part_asked = false;              // by the user: a source without parts is refused (OT2194)
  const char* part_option = "--part ";  // how the user asked
  CsvOptions csv;
  Shape x_shape;        // of one row: the size of images; synthetic: when the spec does not say
  int64_t classes = 0;  // likewise
  // Images when x_shape does not say their size: that of the first one, with no side longer than
  // this; the others are resampled to it. 0: all must be of one size.
  int64_t largest_side = 0;
  ImageReading images;
};

// A file (npy, npz, safetensors, idx, csv, tsv; idx and csv also gzip), a folder with such files or
// with images, one image, or "synthetic:..."; the kind is found from the content, not from the
// name. Throws OT21xx; a dataset without rows is OT2101.
Dataset open_dataset(const std::string& spec, const OpenOptions& options = {});

// Which column feeds which input and label: `--map input=KEY` first, then equal names, then the
// usual names (x, y, images, labels, ...), then what is left over when there is only one choice.
// Returns model name -> column name; throws OT2106 with both lists when something has no column.
// `labels` may stay without a column when `labels_optional`.
std::map<std::string, std::string> match_columns(const Dataset& data,
                                                 const std::vector<std::string>& inputs,
                                                 const std::vector<std::string>& labels,
                                                 const std::map<std::string, std::string>& map,
                                                 bool labels_optional = false);
// What match_columns paired although the names differ and `map` does not say so, in words; "" when
// there is one input only.
std::string matched_by_order(const std::map<std::string, std::string>& columns,
                             const std::vector<std::string>& inputs,
                             const std::map<std::string, std::string>& map);

}  // namespace onnxtrain
