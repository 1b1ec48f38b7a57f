// Operators that libonnx's converter passes on although newer opsets mean something else by them,
// or that it brings forward wrongly.
#pragma once
#include <onnx/onnx_pb.h>

namespace onnxtrain {

// Scan of opset 8 goes through the converter under another name, so that only its body is
// converted; what comes out is written anew by say_anew().
void hide_scans(onnx::GraphProto& g);

// After the conversion of a file of opset `from`: Resize says how it takes pixels, Hardmax works on
// the rows that it meant before opset 13, Scan of opset 8 becomes a Scan over the batch around one
// over the sequence.
void say_anew(onnx::GraphProto& g, int from);

}  // namespace onnxtrain
