// Codes from OT1200: training, data, files, runs.
#include "cli/explanations.hpp"

namespace onnxtrain::cli {

namespace {

constexpr Explanation kTraining[] = {
    {"OT1203",
     "A parameter is asked for its gradient, but every path from it to the loss passes an "
     "operator\nwhose result has no derivative (an index, a sort order, a comparison). "
     "The message lists\nevery such node with its path. Train on an earlier tensor "
     "(--loss-input) or freeze what lies\nbefore."},
    {"OT1204", "No gradient flows through this output of the operator."},
    {"OT1205",
     "The gradient needs a shape that is only known at run time. Fix the batch size (the "
     "recipe's\nkey \"batch\") or export the model with fixed shapes."},
    {"OT1206",
     "The lowered form of this operator's gradient needs shapes as numbers. Fix them:  prepare "
     "--dim\nNAME=NUMBER, --batch NUMBER (the recipe's keys \"dims\" and \"batch\")."},
    {"OT1207",
     "`check --grad` found a gradient that disagrees with finite differences on a random "
     "batch.\nNear kinks (ReLU at 0, Max) differences can be off; try another --seed. If "
     "it stays, it is a\nfault worth reporting."},
    {"OT1210",
     "The file has no training_info. `onnxtrain prepare` or `onnxtrain train` makes it "
     "from an\ninference model."},
    {"OT1230",
     "A recipe or optimizer has a key that does not exist; the message suggests the "
     "nearest."},
    {"OT1231", "A value of the recipe is of the wrong kind."},
    {"OT1232",
     "There is no loss, optimizer or schedule of this name; the message suggests the "
     "nearest."},
    {"OT1233", "A number of the recipe is outside its range."},
    {"OT1234", "An option belongs to another loss than the one chosen."},
    {"OT1235", "An option belongs to another optimizer than the one chosen."},
    {"OT1236", "The model has no output that could be trained on."},
    {"OT1237", "The model has no output of this name."},
    {"OT1238",
     "No loss can be chosen by itself for this output. Say which: --loss mse, "
     "--loss\ncross_entropy, ..."},
    {"OT1239",
     "A loss or optimizer given as an ONNX file does not fit: no input has the name of a "
     "model\noutput, or it has no output."},
    {"OT1240",
     "--freeze and --only leave nothing to train. The globs go over initializer names; * "
     "crosses\ndots."},
    {"OT1241",
     "A BatchNormalization in training form hands out statistics that other nodes read. "
     "Export in\ninference mode, or use --as-is."},
    {"OT1243", "The target's name is taken by a tensor of the model; choose another with --label."},
    {"OT1244",
     "Class losses need scores with the classes along axis 1 or the last, and class numbers "
     "(int64 or\nint32) as labels."},
    {"OT1245",
     "An optimizer given as ONNX file must have inputs R, T, X, G and state, and outputs "
     "the new X\nand state."},
    {"OT1246",
     "The schedule needs a number that is missing (`train` fills in total_steps by "
     "itself,\n`prepare` takes --total-steps), or the training in the file has no learning rate or "
     "counter "
     "that it\ncould be attached to."},
    {"OT1247",
     "An operator has no form in standard operators, so the lowered form cannot be made. "
     "The\nordinary form works."},
    {"OT1248",
     "A BatchNormalization lies inside a branch or a loop, where its running statistics cannot be\n"
     "assigned after a step. Freeze its scale and bias, or use --as-is."},
    {"OT1260",
     "A training step cannot be written in plain operators, or not in the opset that was asked "
     "for.\nThe message names the node. --form compact keeps the operators as they are."},
    {"OT1261",
     "export --step writes one training section: --step for the only one, --step N, or --step "
     "all."},
    {"OT1262",
     "An option of export --step has a value that is not known; the message lists what is."},
    {"OT1263",
     "A portable step was written, but some runtimes lack an operator of it, or would freeze its\n"
     "state. docs/engines.md has the table."},
    {"OT1270", "There is no engine of this name. `onnxtrain doctor` lists engines and devices."},
    {"OT1271", "The engine's Python package is not installed. The message says which."},
    {"OT1272",
     "The engine has no such device on this machine. The message lists those that are there."},
    {"OT1275",
     "The engine that makes the steps failed or its process ended. The last checkpoint is whole;\n"
     "resume with the same or another engine."},
    {"OT1276",
     "The engine returned a state variable, or the scores of a validation, with another type or\n"
     "shape than it has."},
    {"OT1277", "With an engine, a step is always one of all training sections."},
    {"OT1780",
     "A node runs in another runtime (--fallback), and that failed: the runtime's own words "
     "follow.\n"
     "Only tensors of numbers go there."},
    {"OT1781",
     "The fallback cannot be set up: its name, its Python package or a library of operators. The\n"
     "message says which."},
    {"OT1782",
     "The function OP_grad of a file takes the inputs of OP, its outputs and the gradients of its\n"
     "outputs, in this order, and returns one gradient per input."},
    {"OT1770",
     "The options of a whole training (`export --whole`) do not go together, or with the file: "
     "rows\n"
     "and batch, a batch that the file fixes, loops that need the number of rows. The message "
     "says\n"
     "which."},
    {"OT1771",
     "A whole training takes the arrays of a data set, so some input must have rows: its first\n"
     "dimension has a name that outputs share, or is the same number in all inputs."},
    {"OT1773",
     "The manifest of a step says that an output becomes an input that is not there, or is of "
     "another\n"
     "type or shape. Somebody changed it, or it belongs to another file."},
    {"OT1772", "Metrics on validation arrays need the loss, and no output of the training is one."},
    {"OT1250",
     "A glob of --freeze or --only matches no initializer. Nothing is trained under a name that "
     "is\nnot there: look at the names with `onnxtrain info MODEL`."},
    {"OT1251",
     "A size given by name (--dim, the recipe's key \"dims\") fits no open dimension and no input "
     "of "
     "the\nmodel."},
    {"OT1285",
     "Weights that would not train: the gradient of the loss stops before them, another output\n"
     "reads them, or they are stored as integers. `onnxtrain info MODEL` lists what trains, what "
     "does\nnot and why; --freeze says that they stay as they are, --strict makes it an error."},
    {"OT1286",
     "A BatchNormalization in training mode would see one value per channel, whose variance is "
     "0.\nUse larger batches (no batch may have a single row), or freeze its scale and bias."},
    {"OT1287",
     "At the first step every gradient is exactly 0, so nothing trains. Outputs that are "
     "saturated\n"
     "(a Sigmoid at 0 or 1, a Relu below 0, a Clip at its end) have no slope. Scale the data, or "
     "begin\nwith other weights."},
    {"OT1288",
     "Gradients of 16-bit weights are 0 or very small at the first step (root of the mean square "
     "below 4e-6).\nfloat16 has no numbers below 6e-8 and few digits below 6e-5. A larger weight "
     "of "
     "the loss lifts them; Adam\nand its relatives learn the same with it, SGD needs a learning "
     "rate "
     "that is as much smaller. A model in\nfloat32 has no such limit."},
    {"OT1301", "Rule C1: training_info needs IR version 7 or later."},
    {"OT1302", "Rule C2: every domain that nodes use must be imported."},
    {"OT1303", "Rule C3: main graph and algorithm together must be a valid graph."},
    {"OT1305", "Rule C5: an initialization graph has no inputs and sees nothing outside itself."},
    {"OT1306", "Rule C6: bindings to an initialization that is not there."},
    {"OT1307",
     "Rule C7: the key of a binding must be an initializer of the main graph or of the "
     "same\nalgorithm."},
    {"OT1308",
     "Rule C8: the value of an initialization_binding must be an output of the "
     "initialization."},
    {"OT1309",
     "Rule C9: the value of an update_binding must be an output of the algorithm or of "
     "the main\ngraph."},
    {"OT1310", "Rule C10: a key stands once in a list of bindings."},
    {"OT1311",
     "Rule C11 and ruling G1: two sections update one variable. It is read, assigned "
     "after each;\nfiles should not be written so."},
    {"OT1312",
     "Rule C12: a state variable and what is assigned to it must have the same type and "
     "shape."},
    {"OT1313", "Rule C13: the inputs of Gradient are its xs followed by its zs."},
    {"OT1314", "Rule C14: Gradient has at most one output per name in xs."},
    {"OT1315", "Rule C15: names in xs, zs and y must exist at that point of the graph."},
    {"OT1316",
     "Rule C16: xs and zs together must determine y, and must not depend on one another."},
    {"OT1317",
     "Rule C17: xs and y must be floating point, and the path between them differentiable."},
    {"OT1318",
     "Rule C18: an optimizer's inputs and outputs must come in groups of equal length; R "
     "and T are\nscalars."},
    {"OT1319", "Rule C19: the domain ai.onnx.preview.training has no such operator."},
    {"OT1320", "Rule C20: state must be dense, and external tensors must resolve."},
    {"OT1321",
     "Ruling G4: two algorithms have an initializer of the same name. One name is one "
     "variable:\nrename one."},
    {"OT1401",
     "Not enough memory under the limit (80 % of the machine's, or "
     "ONNXTRAIN_MEMORY_LIMIT). A\nsmaller --batch needs less; `onnxtrain info MODEL "
     "--batch N` says how much."},
    {"OT1402",
     "The loops of one run have more iterations than the limit; probably a condition never becomes "
     "false.\n--max-loop-trips allows more."},
    {"OT1403", "A Loop without trip count and with a condition that is always true never ends."},
    {"OT1404",
     "The step does not fit into the memory limit (--memory), although activations are recomputed "
     "instead of\nkept wherever that helps. The message says the smallest limit that works for "
     "this "
     "batch size."},
    {"OT1405",
     "A run with a loop takes longer than its limit (docs/safety.md, 5). --time allows more "
     "seconds."},
    {"OT1411",
     "External data of a model must be an ordinary file in the model's own folder: no "
     "absolute\npath, no .., no links. Anything else could read files it should not."},
    {"OT1502", "A protobuf file holds at most 2 GiB; large tensors go to external data."},
    {"OT1503",
     "The model cannot be written at the wished opset: an operator has no equivalent "
     "there."},
    {"OT1504", "The body of one of our functions cannot be read; a fault of this build."},
    {"OT1505", "The model needs a newer IR version than the limit that was asked for."},
    {"OT1601",
     "The module or function has parts that cannot be converted; the message lists all of "
     "them."},
    {"OT1604", "The learning-rate scheduler cannot be written into the file as it stands."},
    {"OT1605", "The converted file was run to check it and did not give the framework's numbers."},
    {"OT1606", "Example inputs are missing or do not fit the PyTorch module."},
    {"OT1607", "The framework is not installed, or older than the converter knows."},
    {"OT1608", "The loss function could not be captured: it must return a scalar tensor."},
    {"OT1609", "The optimizer's parameters are not those of the module."},
    {"OT1621", "The folder is no SavedModel that TensorFlow can load."},
    {"OT1622",
     "The function of TensorFlow is missing, or not one of dense tensors that can be traced."},
    {"OT1623", "The checkpoint cannot be read, or is not one of this module."},
    {"OT1624", "The function assigns variables, which only a training file can hold."},
    {"OT1711", "The model has operators that the framework has no counterpart for."},
    {"OT1712", "The training section has a form that PyTorch's loop cannot express."},
    {"OT1713",
     "A lowered training file has no Gradient node from which the loss could be taken; "
     "convert the\nordinary form."},
    {"OT1714", "The names noted by an earlier conversion do not fit this file."},
    {"OT1715",
     "The file and the Keras model do not fit: another number of weights, another optimizer, a "
     "class or\n"
     "a loss that is not registered. Give the live model:  ot.to_keras(file, into=model)"},
    {"OT1716",
     "A file of Keras holds Python bytecode (a Lambda layer). It is never run. Write the layer as "
     "a\n"
     "class, or convert the live model:  ot.from_keras(model)"},
    {"OT1717",
     "A .keras or .h5 file is damaged, or reaches outside of itself. Save the model again."},
    {"OT1721", "A step of the converted training was called without one of its inputs."},
    {"OT1722",
     "Outputs were given to the converted loss under names that the model does not have."},
    {"OT1723", "The converted loss needs the very tensors that the module returned."},
    {"OT1724", "The file has no training to convert."},
    {"OT1731",
     "Converting and `bench --against` need Python with the onnxtrain package, and none was "
     "found."},
    {"OT1732",
     "onnxtrain convert goes by suffixes: from .onnx to PyTorch (.pt, .pt2) or from\nPyTorch to "
     ".onnx. The source must exist and be of the other kind than the target."},
    {"OT1733",
     "Converting from and to PyTorch needs packages that are not installed:\n"
     "pip install 'onnxtrain[torch]'."},
    {"OT1760",
     "from_sklearn takes fitted estimators and pipelines of scikit-learn's own classes whose "
     "rules\n"
     "it knows; the message names the step and the reason. docs/sklearn.md has the list."},
    {"OT1761",
     "from_sklearn compares the file with the estimator on rows that it makes up from what the\n"
     "estimator knows about its columns. Give some rows of your own: X=rows."},
    {"OT1762",
     "to_sklearn needs a file that from_sklearn wrote, with its training: trainer.save(path). An\n"
     "exported file has no state."},
    {"OT1734",
     "A .pt file holds a model for onnxtrain only when onnxtrain convert wrote it. A\nstate_dict "
     "has weights and nothing that says what to compute; convert the module\nin Python with "
     "from_torch."},
    {"OT1735",
     "The file is no program that torch.export.load reads: damaged, or written by another\nversion "
     "of PyTorch. Export the module again."},
    {"OT1736",
     "An exported program is converted on its example inputs, and this one holds none.\n"
     "torch.export.export keeps the examples that it is given."},
    {"OT1737",
     "The Python side, which runs the other runtimes for `bench --against`, ended with an "
     "error;\nits "
     "own message stands above."},
    {"OT1800",
     "`conformance run --backend` names a Python module with the function prepare "
     "(onnx.backend.base.Backend).\nIt must be importable from the current folder or an installed "
     "package."},
    {"OT1801", "`conformance export` writes into a new or empty folder only."},
    {"OT1802",
     "The folder is no conformance suite of a version that this program reads. Write one:  "
     "onnxtrain\nconformance export DIR"},
    {"OT1803", "The conformance suite needs the Python packages onnx and ml_dtypes."},
    {"OT1804", "No case of the suite fits the pattern of --only."},
    {"OT1738",
     "torch.export refuses the graph as PyTorch runs it, for example because sizes depend on "
     "values.\n"
     "A .pt holds the same model and needs no export."},
    {"OT1290",
     "The loss needs another kind of output: nll and kl take log-probabilities, bce probabilities, "
     "bce_logits\nand cross_entropy scores. The graph shows it, or the first batch does. Choose "
     "the "
     "loss that fits, or\ntrain on the scores before the activation: --loss-input NAME."},
    {"OT1291",
     "A weight of the file is NaN or infinite. Every loss would be, too. --reset begins with new "
     "values."},
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
    {"OT2186", "An image folder holds one folder per class; images alone are for predict."},
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
    {"OT2203",
     "Resizing can be put in front of a model whose only input is [N,C,H,W] with known sizes."},
    {"OT2204", "Resize with antialiasing is an operator of opset 18; the model cannot be raised."},
    {"OT2205", "Parquet is read with Python: by the command line, or as a table of pandas."},
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
    {"OT3001",
     "The loss, a gradient or a new weight became NaN or infinite. The step was not "
     "carried out;\nthe state before it is saved. The message names the first bad tensor. "
     "A lower learning rate\n(--lr) or --clip 1 usually helps; look at the data for outliers. "
     "--allow-non-finite continues\nregardless."},
    {"OT3002",
     "A state variable is not finite, so it was not saved over the last good checkpoint."},
    {"OT3101",
     "Every label of a batch is the ignored one: the mean is over nothing and counts as 0 "
     "(ruling\nG16). Larger batches, or look at the labels."},
    {"OT3102",
     "The file fixes the number of rows that the model takes at once: those that do not make up "
     "a\nbatch are left out, other ones in each epoch."},
    {"OT3103",
     "The checkpoint of the best epoch was removed from the run folder. Training continues from "
     "the "
     "last\ncheckpoint; the inference model of the best epoch stays if it is still there."},
    {"OT3104",
     "With --accumulate N the weights change every N-th step only, and the run is shorter than "
     "that."},
    {"OT3110", "Some values of the target are outside what the model's output can be."},
    {"OT3111",
     "The model was trained on a table with other columns or classes. They are taken in the order "
     "of\nthis file; what the model learnt before belongs to other columns."},
    {"OT3112",
     "Validation rows that are training rows show how well the model remembers, not how well it "
     "does on\nnew data. Give another file or a fraction: --valid 0.1."},
    {"OT3113",
     "Few validation rows: one of them changes the accuracy by percents. Equal accuracies are "
     "decided by\nthe validation loss."},
    {"OT3114",
     "Columns of very different size: steps that suit one are far too large or small for the "
     "other. "
     "--scale\nstandard subtracts the mean of every column and divides by its standard deviation; "
     "both travel with\nthe run and the exported model's metadata."},
    {"OT3115", "`prepare` writes a new training over the one that the file has."},
    {"OT3116",
     "The rows are not those that the run was trained on so far: the file changed, or another one "
     "was\ngiven. The fingerprint is in data.json and in the checkpoint."},
    {"OT3117",
     "config.toml of the run is gone. Checkpoints hold the settings that decide what is learnt, "
     "too, and the\nrun goes on with those. A checkpoint of an older version holds none: then the "
     "defaults count."},
    {"OT3118",
     "The metric of the best epoch is not better than that of one guess for all rows: the most "
     "frequent\nclass, or the mean of the targets."},
    {"OT3119",
     "Batches from an iterator are not known before they come. In a whole epoch no label was 0; "
     "classes\nare counted from 0."},
    {"OT3120",
     "All rows of the training data have the same class. A classifier learns to answer it always, "
     "which says nothing; rows of other classes are missing, or another column is the target. The "
     "same\nholds for a target that is one number in every row."},
    {"OT3121",
     "A column goes with the target row by row: a copy of it, its code, or something that is known "
     "only\nafterwards. The model learns to copy it. Where the column is not known when "
     "predictions are made,\nits figures are worth nothing."},
    {"OT3122",
     "Two columns are equal in every row. Nothing is gained by the second; often one of them is a "
     "mistake\nmade when the table was put together."},
    {"OT3123",
     "Every column has one value. Nothing in the features tells rows apart, so the best that can "
     "be learnt\nis a constant guess."},
    {"OT3124",
     "One value of a column lies a thousand times farther out than the middle half of them. Scaled "
     "by it,\nall others look alike. Often it marks a gap (-999), or a digit was typed twice."},
    {"OT3125",
     "Names of classes that differ only in capital letters, blanks or dashes are different classes "
     "to a\nprogram, and mostly one to a person."},
    {"OT3126",
     "Nearly every row has a class of its own: nothing can be learnt about a class that is there "
     "once. Numbers\nare learnt with --task numbers."},
    {"OT4001", "A file cannot be opened: it does not exist, or may not be read."},
    {"OT4002", "The path is a folder or device where a file is needed."},
    {"OT4003", "The file is larger than the limit."},
    {"OT4004", "Reading failed; the disk or network drive reports an error."},
    {"OT4005",
     "The file became shorter while it was read. Somebody else writes to it: wait until "
     "it is\ncomplete."},
    {"OT4010", "A file cannot be created: the folder does not exist or may not be written to."},
    {"OT4011", "Writing failed. What was there before is unchanged."},
    {"OT4012", "The disk is full. What was there before is unchanged: free some space and resume."},
    {"OT4013",
     "The system could not bring the file safely to disk. What was there before is "
     "unchanged."},
    {"OT4014",
     "The finished file could not be put in its place. What was there before is unchanged."},
    {"OT4015", "Two writers write the same file at once."},
    {"OT4101", "The run folder cannot be made or written to; choose another with --out."},
    {"OT4102", "The folder is no run: it has no checkpoints."},
    {"OT4201",
     "A checkpoint does not match its checksums: it was damaged or changed after it was "
     "written.\nThe message names the tensor, and the previous checkpoint when that one "
     "is intact."},
    {"OT4202", "There is no checkpoint at this place."},
    {"OT4203",
     "The checkpoint's position does not fit the data: resume with the same data and "
     "batch size."},
    {"OT4204",
     "The log of the run is ahead of the checkpoint: it is an older one, or files were "
     "exchanged.\nResume from it in another folder with --out."},
    {"OT4205",
     "The run has no last checkpoint: it was stopped before its first step was done, or the file "
     "was\nremoved."},
    {"OT4301", "The exported file, read back, does not compute what was exported."},
    {"OT4401", "The sample files are not installed beside the program."},
    {"OT4500",
     "`onnxtrain board` found no run in the folder. A run is a folder with checkpoints/ in it; "
     "`train`\nmakes them in runs/."},
    {"OT4501", "Another program listens on this port. Without --port any free one is taken."},
    {"OT4502",
     "The system does not let this program listen on the port (ports below 1024 need rights)."},
    {"OT4510",
     "A callback of Python's `fit` watches a number that the epochs do not have. Numbers on "
     "validation\ndata need fit(valid=...)."},
    {"OT4511",
     "What was given in fit(callbacks=...) is no callback, or has a method that is never called."},
    {"OT4512", "history.plot() draws with matplotlib, which is not installed."},
    {"OT4513",
     "Steps are made by another engine, but it cannot compute the model's inference form: "
     "validation\nruns in this library, on the state that comes back. The message says why."},
    {"OT4514",
     "A training of several sections runs in another engine, which refuses one of them: that one "
     "is\nmade by this library, and the state goes to and fro. The message says why."},
    {"OT5001",
     "Every process computes as many blocks of rows as the others: --micro-blocks is a multiple of "
     "their\nnumber. A run keeps its number of blocks when it is resumed."},
    {"OT5002", "--distributed is auto, off or mpi."},
    {"OT5003",
     "Processes were started together, but the plug-in that connects them by MPI is not there or "
     "does not\nload. N trainings beside each other are never what was meant; --distributed off "
     "asks for them."},
    {"OT5004",
     "The launcher belongs to one MPI library and the plug-in to another: every process sees "
     "itself alone."},
    {"OT5005", "There are fewer rows than processes."},
    {"OT5006", "--batch is the batch of all processes together; each needs a row of it."},
    {"OT5007",
     "All processes of a training have the same version, model, data, settings and position."},
    {"OT5008", "This can be done by one process only."},
    {"OT5010",
     "A batch can be cut into blocks of rows when every value of the step belongs to rows, is a "
     "sum "
     "or\nmean over rows, or is the same for all. The message names the node that is none of "
     "these."},
    {"OT5011", "The file fixes how many rows it takes: there is nothing to cut."},
    {"OT5012", "This output mixes rows, so blocks of them do not give it."},
    {"OT5013", "Only batches of tensors can be cut into blocks of rows."},
    {"OT5020", "Processes that train together make the same steps."},
    {"OT5030",
     "A process of the training is gone or stands still. The others end, the last checkpoint is "
     "whole."},
    {"OT5031", "A call of MPI failed."},
    {"OT5051",
     "Blocks of one batch add up statistics of BatchNormalization in one order; here they did "
     "not. Please\nreport it; --batch-norm local needs no such sums."},
    {"OT5052", "--batch-norm is local (statistics of each block) or sync (of the whole batch)."},
    {"OT5054", "--reduce-dtype is float32 or bf16."},
    {"OT5055",
     "--shard-optimizer gives every process a part of the optimizer's state. This training has "
     "none "
     "that could be shared out: it keeps no state (SGD without momentum), or what it keeps is read "
     "by the model, by another training section, or by the updates of all other tensors."},
    {"OT5057",
     "With a sharded optimizer no process has the whole state. Saving a checkpoint and reading the "
     "optimizer's variables collect it from all processes, so all of them have to do it at the "
     "same "
     "step."},
    {"OT5053", "Processes of one host are connected by sockets; the system gave no more of them."},
    {"OT5040", "launch starts processes on other hosts by mpirun, or by srun within a Slurm job."},
    {"OT5080",
     "travel of Flower's run configuration: all (everything that the training changes) or "
     "trainable "
     "(the\nparameters alone; optimizer state and statistics stay with each client)."},
    {"OT5081", "A key of Flower's run configuration has a value that it cannot have."},
    {"OT5082",
     "onnxtrain.flower trains what a training file says: ot.prepare or onnxtrain prepare makes one "
     "from an\ninference model."},
    {"OT5083",
     "State came from the other side that does not fit the training file here: another name, shape "
     "or type,\nor numbers that are not finite. The server leaves such a reply out and goes on."},
    {"OT5084",
     "The number of a client's rows is its weight in the average: they must be countable."},
    {"OT5085", "Clients that train a file as it stands cannot do their part of this strategy."},
    {"OT5086", "No client answered in any round: there is no averaged model."},
    {"OT9001",
     "Something unexpected happened inside; please report it with the command that caused "
     "it."},
};

}  // namespace

std::span<const Explanation> training_explanations() { return kTraining; }

}  // namespace onnxtrain::cli
