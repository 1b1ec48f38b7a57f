// Codes OT0xxx and OT1000-OT1199: the command line, files and operators.
#include "cli/explain/explanations.hpp"

namespace onnxtrain::cli {

namespace {

constexpr Explanation kGraph[] = {
    {"OT0001",
     "The command line was not understood: a command, option or value that does not exist "
     "or is\nmissing. The help line names what was probably meant; `onnxtrain COMMAND "
     "--help-all` lists\neverything."},
    {"OT0002",
     "`explain` was asked about a code that no message carries. Codes are OT and four "
     "digits."},
    {"OT0003",
     "An option has a form of its own (INPUT=KEY, KEY=NUMBER, a fraction from 0 up to 1) "
     "and got\nsomething else."},
    {"OT0004",
     "The file already says how it is trained (training_info). Flags that describe "
     "another loss or\noptimizer would be ignored, so they are refused. Export the "
     "inference part first if you want\nanother training."},
    {"OT0005",
     "Something that cannot be guessed is missing: the model, the run to resume, or the "
     "data."},
    {"OT0006", "There is no sample of this name. `onnxtrain demo --list` shows them."},
    {"OT0007",
     "A key of the toml file is no option of the command. Keys are the long option names, "
     "without\ndashes in front; a misspelt one would silently do nothing, so it is an "
     "error."},
    {"OT0008",
     "A value from the environment or from a toml file cannot be used: wrong type, "
     "outside the\nallowed values, or the file is not valid toml. ONNXTRAIN_ISA, which lowers the "
     "vector\ninstructions that are used, takes sse4, avx2 and avx512."},
    {"OT0009",
     "ONNXTRAIN_MEMORY_LIMIT is no number of bytes; write for example 8G, 500M or 2000000000."},
    {"OT0030", "There is no network of that kind."},
    {"OT0031", "A size or a probability of a new network is out of range."},
    {"OT0032",
     "Tables are read as UTF-8, or UTF-16 that says so; --encoding names another encoding."},
    {"OT0033", "--separator is one character, or one of the words tab and space."},
    {"OT0034",
     "The model scales its inputs itself (metadata onnxtrain.scale = graph): it takes raw numbers. "
     "A scale\nwhile reading would be a second one."},
    {"OT0035",
     "An option of preprocessing has a value that is not known, or as many numbers as "
     "there are no columns."},
    {"OT0039", "Balanced class weights follow from the number of rows of each class."},
    {"OT0038", "--proba is for a model that predicts classes."},
    {"OT0037", "--metric names a metric that this training does not measure."},
    {"OT0036", "--image-size is one side, or height and width."},
    {"OT0012",
     "The output of a command is one of the files that it reads. Nothing is written, so that the "
     "original\nstays; give the result another name."},
    {"OT0011",
     "The ending of the output file says another format than the one that is written. Nothing was\n"
     "written."},
    {"OT0010",
     "`bench --against` compares with torch (PyTorch) and ort (onnxruntime), on models whose "
     "inputs\nare tensors."},
    {"OT1002",
     "The bytes are not an ONNX model, or not a whole one. Check that the download or "
     "copy is\ncomplete, and that it is not a zip, a checkpoint of another program or a "
     "Git LFS pointer."},
    {"OT1003",
     "The file goes beyond a limit that protects from hostile files (length of names, "
     "depth of\nsubgraphs, number of nodes, rank). Ordinary models are far below."},
    {"OT1004", "The text is not in ONNX's text syntax; the message says where reading stopped."},
    {"OT1010",
     "A tensor's element type, dimensions or number of bytes do not fit together. Nothing "
     "is\npadded or guessed: the file is damaged or was written by a faulty exporter."},
    {"OT1011",
     "A tensor lies in a file beside the model that is missing or too short, or the model "
     "came\nfrom memory and has no folder. Keep the .data file beside the .onnx file."},
    {"OT1012", "A sparse tensor is malformed: values and indices do not fit together."},
    {"OT1020",
     "The file's IR version is newer than this build knows, or older than 2017. Export "
     "again with\nanother version of ONNX."},
    {"OT1021", "The file does not say properly which operator sets it uses (opset_import)."},
    {"OT1022", "A node has too few or too many inputs or outputs for its operator and opset."},
    {"OT1023",
     "The standard withdrew this form of the operator, because it was faulty or unclear. Its "
     "meaning\n"
     "is still in the standard, and the model runs by it; newer opsets have a better form."},
    {"OT1036",
     "An input of an operator has an element type that the operator's definition does not "
     "allow."},
    {"OT1042", "A function of the model calls itself; ONNX forbids recursion."},
    {"OT1043",
     "A value name is missing or defined twice. Every name must be assigned exactly once."},
    {"OT1044",
     "A node reads a value that nothing defines: a node or an initializer is missing. Nodes may "
     "stand\nin any order; they are sorted when the file is read."},
    {"OT1045", "An output of the graph or of a function is never computed."},
    {"OT1046", "An input of the graph has no type."},
    {"OT1049", "A node gives the same attribute twice."},
    {"OT1051", "A Constant node must have exactly one value attribute and one output."},
    {"OT1052", "An attribute has another kind or value than the operator's definition demands."},
    {"OT1053",
     "A call of a function or graph gives another number of inputs or outputs than it has."},
    {"OT1054",
     "GraphCall is ONNX 1.7's way for a training algorithm to run the main graph; it may "
     "call\nnothing else, and only from an algorithm."},
    {"OT1055",
     "The `axis` of an old broadcasting operator (before opset 7) does not fit the shapes."},
    {"OT1056", "An attribute is of a kind that no operator has."},
    {"OT1057",
     "An attribute refers to an attribute of a function, but the node is not inside a "
     "function."},
    {"OT1058",
     "An option of export that belongs to another kind of file than the one asked for: options of "
     "a "
     "training step need --step, options of a whole training --whole."},
    {"OT1101",
     "The file uses an operator that has no implementation here and no function body in "
     "the\nstandard or in the file. Check the domain and opset version; custom operators "
     "can be written\nas model-local functions."},
    {"OT1102",
     "No implementation of the operator takes these element types, or a shape has a "
     "negative\ndimension."},
    {"OT1103", "A tensor has more elements than can be counted or than memory could hold."},
    {"OT1104",
     "Two shapes cannot be broadcast together: in every dimension sizes must be equal or "
     "one of\nthem 1."},
    {"OT1105",
     "An axis is outside the tensor's dimensions. Axes count from 0, or from -1 backwards."},
    {"OT1106",
     "An attribute or a reshape asks for something impossible; the message has both sides."},
    {"OT1107", "A required input of an operator is missing."},
    {"OT1108",
     "An operator got a sequence, map or nothing where it needs a tensor, or the other "
     "way round."},
    {"OT1109", "An operator needs a single element and got several."},
    {"OT1110", "The element type is not supported by this operator, or the graph has a cycle."},
    {"OT1111", "A tensor has another element type or shape than was planned."},
    {"OT1112", "The tensor has more dimensions than this operator handles."},
    {"OT1120", "A value that should be set is not a tensor."},
    {"OT1121",
     "The model has no initializer of this name. `onnxtrain info MODEL --json` lists them."},
    {"OT1122",
     "There is no state variable of this name. State variables are the keys of the "
     "bindings in\ntraining_info."},
    {"OT1123", "The model has no output of this name."},
    {"OT1124",
     "The model has fewer training sections than the number asked for; they count from 0."},
    {"OT1125",
     "The training has no single scalar that feeds all optimizers as their learning rate, so it "
     "cannot be\nread or set from outside."},
    {"OT1126",
     "A named tensor does not exist in the model, or no random value can be made for an "
     "input of\nthis type."},
    {"OT1137",
     "initialize() puts state variables back to what the file says. Their first values are not "
     "kept "
     "in memory: they\nare read again, and the file is not the one they came from any more."},
    {"OT1127",
     "None of the model's outputs is floating point, so there is nothing to differentiate."},
    {"OT1128", "Gradients exist with respect to floating-point tensors only."},
    {"OT1129",
     "The C interface was given an element type, kind, size or value that does not exist, or "
     "NULL."},
    {"OT1130",
     "An attribute or input of an operator has a value its definition does not allow; the "
     "message\nnames it."},
    {"OT1131", "The target of Reshape does not fit the number of elements."},
    {"OT1132", "Pieces that are joined or split do not fit together along the other dimensions."},
    {"OT1133", "Shapes of the inputs of an operator do not belong together."},
    {"OT1134", "A mode or setting of an operator has an unknown value or is missing."},
    {"OT1135", "Range has no end: its step is 0 or it would have too many elements."},
    {"OT1136",
     "An equation of Einsum, or padding, slicing or tiling amounts, do not fit the shapes."},
    {"OT1140", "A position is outside a sequence."},
    {"OT1141",
     "A convolution or pooling window does not fit its input with these strides, "
     "dilations and\npads."},
    {"OT1142", "Attributes of a convolution or pooling disagree with its weights or inputs."},
    {"OT1143", "Columns do not make an image of the given size (Col2Im)."},
    {"OT1144", "Indices or pieces are outside the tensor they belong to."},
    {"OT1145",
     "DeformConv: inputs, offsets, mask or bias have shapes that do not belong together."},
    {"OT1146",
     "An integer convolution or matrix multiplication has scales, zero points or bias of the "
     "wrong shape\nor type."},
    {"OT1147", "CausalConvWithState: an attribute or a shape does not fit."},
    {"OT1150",
     "A subgraph of If, Loop or Scan has another number of inputs or outputs than its "
     "node, a\nsetting of a recurrent layer is unknown, or an element type needs the Python "
     "package ml_dtypes."},
    {"OT1151",
     "A scan output changes its shape between iterations, or an input of a recurrent "
     "layer has the\nwrong shape, or Python was given something else than a model, a path or "
     "bytes."},
    {"OT1152", "A setting is unknown or outside its range."},
    {"OT1153",
     "Scan inputs have different lengths, or a metric is unknown or does not fit the targets."},
    {"OT1154",
     "SequenceMap runs over sequences of different lengths, or an optimizer or a loss was given "
     "to\n"
     "Python in a form that is none."},
    {"OT1155",
     "A regular expression is too large, or fit has no data: neither given nor kept in the run."},
    {"OT1156",
     "Data was given to Python as something that is neither arrays nor a mapping of names "
     "to\narrays."},
    {"OT1157", "An iterator without an end needs steps_per_epoch, so that epochs have a length."},
    {"OT1158",
     "A cotangent was given for several outputs, or for one that does not exist; name the "
     "output\nit belongs to."},
    {"OT1159", "The estimator has not been fitted yet."},
    {"OT1160",
     "Coefficients of a classical model (ai.onnx.ml) do not fit its number of features or "
     "classes,\nor a setting, scale or size of Resize is unknown or impossible."},
    {"OT1161", "An SVM's attributes do not fit together."},
    {"OT1162",
     "A tree ensemble's attributes do not fit together: unequal lengths, links outside "
     "the tree,\nunknown modes."},
    {"OT1169",
     "An SVMClassifier of two classes reads coefficients without a negative one in another way, "
     "so\n"
     "trained coefficients of that kind cannot be written back into the operator."},
    {"OT1163", "Scaler, Normalizer or Imputer: the number of entries does not fit the features."},
    {"OT1164", "An encoder's keys and values do not fit together."},
    {"OT1165",
     "GridSample: a mode is unknown, or shapes do not fit; or a map (ai.onnx.ml) has other keys "
     "or\n"
     "values than its operator takes."},
    {"OT1166",
     "An object of the Python package does not have this attribute, or it can be read only. "
     "Setting it would\nhave made a new attribute that nobody reads. Classes derived from ours "
     "take any attribute."},
    {"OT1167", "Regions of RoiAlign or MaxRoiPool do not fit the input."},
    {"OT1168", "A region names an image that the batch does not have."},
    {"OT1170", "DFT: length or axis is not one number or lies outside the signal."},
    {"OT1171", "STFT: frames, step and signal do not fit together."},
    {"OT1172", "MelWeightMatrix needs positive numbers."},
    {"OT1173", "MelWeightMatrix: the edges ask for bins that do not exist."},
    {"OT1174", "NonMaxSuppression: boxes and scores do not fit together."},
    {"OT1175", "Quantisation: scale, zero point and block size do not fit the tensor."},
    {"OT1180",
     "Attention: queries, keys, values, mask or cache have shapes that do not belong "
     "together."},
    {"OT1190", "An image is damaged."},
    {"OT1191", "An image is in a format or variant that is not supported."},
    {"OT1192", "The pixel format of ImageDecoder is unknown."},
    {"OT1193",
     "Images of this format are decoded by a library of the system that is not "
     "installed."},
};

}  // namespace

std::span<const Explanation> graph_explanations() { return kGraph; }

}  // namespace onnxtrain::cli
