// Quantized operators of com.microsoft. Internal to onnx/.
#pragma once
#include <map>

#include "onnx/functions/contrib_attention.hpp"

namespace onnxtrain::contrib {

using Maker = void (*)(const ContribNode&, Body&);
const std::map<std::string, Maker>& quantized_makers();

}  // namespace onnxtrain::contrib
