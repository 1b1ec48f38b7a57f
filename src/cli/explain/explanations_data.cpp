// Codes OT2xxx: data.
#include "cli/explain/explanations.hpp"

namespace onnxtrain::cli {

namespace {

constexpr Explanation kData[] = {
    {"OT2101",
     "There are no rows to train on: the file or array is empty, or too small to be split."},
    {"OT2102",
     "The data is in no known format, or the folder holds several data files. Known: npy, "
     "npz, idx\n(MNIST), csv, tsv. numpy.savez('data.npz', x=x, y=y) writes one."},
    {"OT2103", "Arrays of one dataset have different numbers of rows."},
    {"OT2104",
     "A class label is outside the range the model's output has room for. Often labels "
     "begin at 1:\n--label-offset -1. A label that means \"ignore this\" is allowed with "
     "--ignore-index."},
    {"OT2105", "The data has no array or column of this name; the message lists what there is."},
    {"OT2106",
     "An input of the model has no array that belongs to it. Name the arrays like the "
     "inputs, or\nsay --map input=KEY."},
    {"OT2107", "A single number is not data: the first dimension of an array counts its rows."},
    {"OT2108", "Two arrays have the same name."},
    {"OT2109", "The source has no train or test part of the kind that was asked for."},
    {"OT2110",
     "The data's shape does not fit the model's input; the message shows both. Images "
     "with\nchannels last: --layout nhwc."},
    {"OT2111",
     "A value does not fit the element type of the model's input, or an input got another "
     "type or\nrank."},
    {"OT2112", "The data's element type cannot feed this input."},
    {"OT2113", "An input that the model needs was not given."},
    {"OT2114",
     "The file has a class that training did not know. Names of classes travel with the "
     "trained\nmodel."},
    {"OT2115",
     "The file fixes the number of rows that the model takes at once, and the batch size or the "
     "data\ndo not fit it. Models are opened to any number where the graph allows it; this one "
     "does not."},
    {"OT2116", "--target names the column to predict of csv or tsv data; other data has arrays."},
    {"OT2117",
     "An input of the model counts its rows along another dimension than the first, as recurrent "
     "layers\nwith time first do. Rows of data would be taken for steps in time."},
    {"OT2120",
     "The data holds NaN or infinity at the place named. One such value spoils every "
     "weight, so\ntraining refuses it."},
    {"OT2121", "A csv value is missing. Fill it in or remove the row."},
    {"OT2122",
     "A csv line has another number of fields than the first, or there are too many "
     "columns."},
    {"OT2123", "A quote in the csv file is never closed."},
    {"OT2124",
     "A csv column holds text where a number is needed. If it is what should be "
     "predicted:\n--target NAME."},
    {"OT2125", "The csv file is not UTF-8 text."},
    {"OT2130",
     "The rows cannot be split for validation with this fraction, or an element type is "
     "unknown to\nnumpy."},
    {"OT2131", "A batch must have at least one row."},
    {"OT2132", "--scale takes auto, none or MEAN,STD."},
    {"OT2140", "Compressed data is damaged or cut short."},
    {"OT2141",
     "A compressed file claims to become larger than is plausible; it is refused before "
     "memory is\ntaken."},
    {"OT2142", "A zip archive (npz) is damaged."},
    {"OT2143", "A zip archive is encrypted or uses a compression that is not supported."},
    {"OT2144", "A member of a zip archive does not match its checksum."},
    {"OT2145", "The npy header is damaged."},
    {"OT2146",
     "The npy file holds Python objects or records. Objects would have to be unpickled, "
     "which can\nrun code, so they are never loaded."},
    {"OT2147", "The npy file is shorter or longer than its header says."},
    {"OT2148", "The idx file is damaged."},
    {"OT2150", "An array cannot be written to npy, or a synthetic: description makes no sense."},
    {"OT2151",
     "The array is stored in an order that must be in memory at once; store it in C order."},
    {"OT2152", "A result is no tensor, so it has no place in an npz file."},
    {"OT2153",
     "The model's first output has no row per row of data, so predictions cannot be "
     "written as a\ntable."},
    {"OT2154",
     "The program that makes the batches (ot_batches of the C API) reported that it cannot go "
     "on.\nThe training is as it was after the last batch that came."},
    {"OT2160",
     "The table lacks columns that the run was trained on or that it predicts. Columns are taken "
     "by\nname, in any order; others than these are passed over. `predict` needs no target."},
    {"OT2161",
     "A subfolder of an image folder holds no images. Classes are numbered by the names of the "
     "folders,\nso an empty one would leave a number without rows, or shift the others."},
    {"OT2162",
     "The target is text, and the loss learns numbers. Numbers are written plainly: 1234.5, not "
     "\"1,234.5\"\nor \"5 %\". Text of classes needs one score per class (two classes: one score) "
     "and a loss for classes."},
    {"OT2163",
     "The target has values that the loss does not take: bce, bce_logits and kl need 0 to 1, hinge "
     "-1 and 1."},
    {"OT2165",
     "Two inputs of the model share a dimension and were given different sizes of it, 120 rows of "
     "x "
     "and 119 labels\nfor example."},
    {"OT2166",
     "The model's output cannot reach the target's values: a Sigmoid gives 0 to 1, a Tanh -1 to 1. "
     "Train\non the tensor before it (--loss-input), or scale the target."},
    {"OT2170",
     "A new network of this kind does not suit the rows of the data: cnn and resnet take images, "
     "lstm, gru\nand transformer sequences, mlp any row."},
    {"OT2171", "A network that tells classes apart needs at least two of them."},
    {"OT2172",
     "The columns of the table become another number of numbers than the model's input takes."},
    {"OT2173", "Preprocessing is put in front of a model before it gets its training."},
    {"OT2180",
     "Every column of the table is empty, always the same, counts the rows, or holds a text that "
     "hardly\never comes again. docs/tables.md has the rules."},
    {"OT2181",
     "A field of a column of dates is no date that exists. Dates are 2020-12-31, 2020/12/31, "
     "31.12.2020,\n31/12/2020 or 12/31/2020, with or without a time; they become days since "
     "1970-01-01."},
    {"OT2182", "A flag names a column that the table does not have among its features."},
    {"OT2183", "A column has more different values than a small network can tell apart."},
    {"OT2184", "The target does not hold what --task says: classes, or numbers."},
    {"OT2185",
     "Token ids are whole numbers from 0; the largest one decides the size of the "
     "embedding."},
    {"OT2186", "Images need labels: one folder per class, or a csv with a column of file names."},
    {"OT2187",
     "Preprocessing makes the only input of a model, [N, width], out of the columns of a table."},
    {"OT2194",
     "--part chooses between training and test data of a source that holds both: x_train and "
     "x_test,\nMNIST's files, folders train/ and test/. This source has no such parts, so all its "
     "rows would\nbe taken whatever --part says."},
    {"OT2195",
     "A dictionary has a key that is neither an input nor a target of the model, while one of "
     "these was\nnot given. Keys are never matched by guessing."},
    {"OT2200", "Every image of the folder is damaged or in a format that is not read."},
    {"OT2201", "With --skip-bad no image of a class is left: its number would be missing."},
    {"OT2202",
     "Images lie in folders of classes, at any depth. Where every such folder holds the same "
     "folders, these may be the classes and the outer ones parts of the data (train, test)."},
    {"OT2203",
     "Resizing can be put in front of a model whose only input is [N,C,H,W] with known sizes."},
    {"OT2204", "Resize with antialiasing is an operator of opset 18; the model cannot be raised."},
    {"OT2205", "Parquet is read with Python: by the command line, or as a table of pandas."},
    {"OT2207",
     "The column of a csv that names the images: each must lie beside the csv, or in --images, and "
     "there may be one\nsuch column."},
    {"OT2206", "A parquet file is damaged, or a column of it holds lists."},
    {"OT2220", "Text and parquet need Python with a package: pip install onnxtrain[text]."},
    {"OT2221",
     "The tokenizer gives ids that the embedding of the model has no row for: it is another one "
     "than\nthe model's."},
    {"OT2222", "A tokenizer is the file tokenizer.json of the package tokenizers."},
    {"OT2223", "Text needs a model with an input of token ids, int64 [N, length]."},
    {"OT2224", "--text, --tokenizer and --max-length belong together and must fit the model."},
    {"OT2225", "New networks for text are transformer, lstm and gru."},
    {"OT2210", "--augment takes flip, crop, rotate, color, cutout, mixup and ONNX graphs."},
    {"OT2211", "A number behind a word of --augment is outside what makes sense for it."},
    {"OT2212", "--augment changes images [N,C,H,W]; no input of the model is one."},
    {"OT2213", "The image is smaller than what --augment would cut out of it or move it by."},
    {"OT2214",
     "A graph for --augment takes the model's input and gives the changed rows, of the same type "
     "and shape."},
    {"OT2174", "A column has the name of a weight, an input or an output of the model."},
};

}  // namespace

std::span<const Explanation> data_explanations() { return kData; }

}  // namespace onnxtrain::cli
