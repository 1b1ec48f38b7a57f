// Codes OT12xx to OT18xx: gradients, recipes, training sections, converters and engines.
#include "cli/explain/explanations.hpp"

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
    {"OT1271",
     "The engine's Python package is not installed, or cannot be loaded. The message says which."},
    {"OT1272",
     "The engine has no such device on this machine. The message lists those that are there."},
    {"OT1275",
     "The engine that makes the steps failed or its process ended. The last checkpoint is whole;\n"
     "resume with the same or another engine."},
    {"OT1276",
     "The engine returned a state variable, or the scores of a validation, with another type or\n"
     "shape than it has, or a state variable with NaN or infinite values. The last checkpoint is\n"
     "whole."},
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
     "The manifest of a step cannot be followed: an output becomes an input that is not there, is\n"
     "no state, or is of another type or shape, a part is missing, or it does not agree with the\n"
     "manifest inside of the model. Somebody changed it, or it belongs to another file."},
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
     "A weight or a running statistic of the file is NaN or infinite. No loss would be finite. "
     "--reset begins with new values."},
    {"OT1292",
     "The state of an optimizer in the file cannot be: an average of squares has numbers below 0, "
     "or the\ncounter of steps is negative. The first step would give NaN. Files that were edited "
     "by hand have such states."},
};

}  // namespace

std::span<const Explanation> training_explanations() { return kTraining; }

}  // namespace onnxtrain::cli
