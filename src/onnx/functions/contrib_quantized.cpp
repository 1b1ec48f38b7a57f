// Quantized operators of com.microsoft: from integers to numbers, the operator, and back to
// integers; weights of 4 and 8 bits in blocks; the quantized LSTM as a Scan.
#include "onnx/functions/contrib_quantized.hpp"

#include "core/error.hpp"

namespace onnxtrain::contrib {

namespace {

// to = (from - zero) * scale
std::string numbers(const std::string& to, const std::string& from, const std::string& scale,
                    const std::string& zero, bool has_zero, const std::string& more = "") {
  return cat("  ", to, " = DequantizeLinear ", more, "(", from, ", ", scale,
             has_zero ? ", " + zero : "", ")\n");
}

std::string quantized(const std::string& to, const std::string& from, const std::string& scale,
                      const std::string& zero, bool has_zero) {
  return cat("  ", to, " = QuantizeLinear (", from, ", ", scale, has_zero ? ", " + zero : "",
             ")\n");
}

// The standard's operators, before it had 16 and 4 bits.
void dequantize_linear(const ContribNode& n, Body& b) {
  b.inputs = "X, s, z", b.outputs = "Y", b.opset = 21;
  b.text = numbers("Y", "X", "s", "z", n.has(2), passed(n, {"axis"}));
}
void quantize_linear(const ContribNode& n, Body& b) {
  b.inputs = "X, s, z", b.outputs = "Y", b.opset = 21;
  b.text = cat("  Y = QuantizeLinear ", passed(n, {"axis"}), "(X, s", n.has(2) ? ", z" : "", ")\n");
}

// Without a zero point QuantizeLinear makes uint8.
bool result_is_known(const ContribNode& n, size_t input, size_t zero, Body& b) {
  if (!n.has(zero) && n.type(input) != DType::kUint8)
    b.why = "it has no zero point that says the type of its result";
  return b.why.empty();
}

template <bool kMul>
void binary(const ContribNode& n, Body& b) {
  b.inputs = "A, as, az, B, bs, bz, cs, cz", b.outputs = "Y";
  if (!result_is_known(n, 0, 7, b)) return;
  b.text = numbers("a", "A", "as", "az", n.has(2)) + numbers("b", "B", "bs", "bz", n.has(5)) +
           cat("  y = ", kMul ? "Mul" : "Add", " (a, b)\n") +
           quantized("Y", "y", "cs", "cz", n.has(7));
}

// x -> y by `text`, between integers.
void unary(const ContribNode& n, Body& b, const std::string& text) {
  b.inputs = "X, xs, xz, ys, yz", b.outputs = "Y";
  if (!result_is_known(n, 0, 4, b)) return;
  b.text =
      numbers("x", "X", "xs", "xz", n.has(2)) + text + quantized("Y", "y", "ys", "yz", n.has(4));
}

void leaky_relu(const ContribNode& n, Body& b) {
  unary(n, b, cat("  y = LeakyRelu <alpha = ", text_of(n.number("alpha", 0.01f)), "> (x)\n"));
}
void sigmoid(const ContribNode& n, Body& b) { unary(n, b, "  y = Sigmoid (x)\n"); }

void softmax(const ContribNode& n, Body& b) {
  const auto axis = int64_t(n.number("axis", -1));
  if (n.number("opset", 13) >= 13)
    unary(n, b, cat("  y = Softmax <axis = ", axis, "> (x)\n"));
  else  // all dimensions from the axis on are one row
    unary(n, b,
          cat("  dims = Shape (x)\n  flat = Flatten <axis = ", axis,
              "> (x)\n  p = Softmax <axis = 1> (flat)\n  y = Reshape (p, dims)\n"));
}

void global_average_pool(const ContribNode& n, Body& b) {
  if (n.number("channels_last", 0) == 0) return unary(n, b, "  y = GlobalAveragePool (x)\n");
  if (n.rank(0) < 3) b.why = "its channels are last in a tensor whose rank the file does not say";
  std::string axes;
  for (int k = 1; k + 1 < n.rank(0); ++k) axes += cat(k > 1 ? ", " : "", k);
  if (b.why.empty()) unary(n, b, cat("  y = ReduceMean <axes = [", axes, "]> (x)\n"));
}

void average_pool(const ContribNode& n, Body& b) {
  if (n.number("channels_last", 0) != 0) b.why = "channels_last is not known";
  unary(n, b,
        cat("  y = AveragePool ",
            passed(n, {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads",
                       "strides"}),
            "(x)\n"));
}

void concat(const ContribNode& n, Body& b) {
  b.inputs = "ys, yz", b.outputs = "Y";
  std::string list;
  for (size_t k = 2; k + 2 < n.ranks.size(); k += 3) {
    const std::string i = cat(k);
    b.inputs += cat(", X", i, ", s", i, ", z", i);
    b.text += numbers("x" + i, "X" + i, "s" + i, "z" + i, n.has(k + 2));
    list += cat(k > 2 ? ", x" : "x", i);
  }
  if (list.empty() || n.ranks.size() % 3 != 2) {
    b.why = "its inputs do not come in threes: tensor, scale, zero point";
    return;
  }
  if (!result_is_known(n, 2, 1, b)) return;
  b.text += cat("  y = Concat <axis = ", int64_t(n.number("axis", 0)), "> (", list, ")\n") +
            quantized("Y", "y", "ys", "yz", n.has(1));
}

void where(const ContribNode& n, Body& b) {
  b.inputs = "C, A, as, az, B, bs, bz, ys, yz", b.outputs = "Y";
  b.text = numbers("a", "A", "as", "az", n.has(3)) + numbers("b", "B", "bs", "bz", n.has(6)) +
           "  y = Where (C, a, b)\n" + quantized("Y", "y", "ys", "yz", n.has(8));
}

// The bias has the scale of A times that of B.
void gemm(const ContribNode& n, Body& b) {
  b.inputs = "A, as, az, B, bs, bz, C, ys, yz", b.outputs = "Y";
  const bool ta = n.number("transA", 0) != 0, tb = n.number("transB", 0) != 0;
  b.text = numbers("a", "A", "as", "az", n.has(2)) +
           numbers("b", "B", "bs", "bz", n.has(5), cat("<axis = ", tb ? 0 : 1, "> ")) +
           cat("  m = Gemm <transA = ", int(ta), ", transB = ", int(tb), "> (a, b)\n");
  if (n.has(6))
    b.text +=
        "  c = Cast <to = 1> (C)\n  by = Mul (as, bs)\n  cf = Mul (c, by)\n"
        "  sum = Add (m, cf)\n";
  else
    b.text += "  sum = Identity (m)\n";
  b.text += constant("alpha", n.number("alpha", 1), "sum") + "  y = Mul (sum, alpha)\n";
  b.text += n.has(7) ? quantized("Y", "y", "ys", "yz", n.has(8)) : "  Y = Identity (y)\n";
}

// Bytes [N, count] as numbers [N, count * 8 / bits], the lowest bits first.
std::string unpacked(const std::string& from, const std::string& to, int bits, int64_t rows) {
  if (bits == 8)
    return cat("  ", to, " = Reshape (", from, ", rows_", to, ")\n",
               ints("rows_" + to, cat(rows, ", -1")));
  std::string text = ints("last_" + to, "-1"), list;
  for (int k = 0; k < 8 / bits; ++k) {
    const std::string p = cat(to, k);
    text += cat("  ", p, "_d_ = Constant <value_int = ", 1 << (k * bits), "> ()\n  ", p,
                "_d = CastLike (", p, "_d_, ", from, ")\n  ", p,
                "_m_ = Constant <value_int = ", 1 << bits, "> ()\n  ", p, "_m = CastLike (", p,
                "_m_, ", from, ")\n  ", p, "_q = Div (", from, ", ", p, "_d)\n  ", p, "_r = Mod (",
                p, "_q, ", p, "_m)\n  ", p, " = Unsqueeze (", p, "_r, last_", to, ")\n");
    list += cat(k ? ", " : "", p);
  }
  return cat(text, "  ", to, "_all = Concat <axis = -1> (", list, ")\n",
             ints("rows_" + to, cat(rows, ", -1")), "  ", to, " = Reshape (", to, "_all, rows_", to,
             ")\n");
}

// A times the transpose of a weight [N, K] that is stored in blocks with a scale each.
void matmul_bits(const ContribNode& n, Body& b) {
  b.inputs = "A, B, scales, zeros, order, bias", b.outputs = "Y";
  const auto rows = int64_t(n.number("N", 0)), width = int64_t(n.number("K", 0));
  const auto block = int64_t(n.number("block_size", 0));
  const int bits = int(n.number("bits", 4));
  if (rows < 1 || width < 1 || block < 1) b.why = "N, K and block_size are not all given";
  if (bits != 2 && bits != 4 && bits != 8) b.why = cat(bits, " bits are not known");
  if (n.has(4)) b.why = "an order of columns (g_idx) is not known";
  if (!b.why.empty()) return;
  const int64_t blocks = (width + block - 1) / block;
  b.text = ints("at_0", "0") + ints("axis_1", "1") + ints("width", cat(width)) +
           ints("count", cat(blocks)) + ints("cube", cat(rows, ", ", blocks, ", -1")) +
           unpacked("B", "q", bits, rows) + "  qf = CastLike (q, A)\n  qc = Reshape (qf, cube)\n" +
           "  sc = Reshape (scales, cube)\n";
  if (!n.has(3))
    b.text += constant("zc", 1 << (bits - 1), "A");
  else if (n.type(3) == DType::kUint8)
    b.text += unpacked("zeros", "z", bits, rows) +
              "  zs = Slice (z, at_0, count, axis_1)\n  zf = CastLike (zs, A)\n"
              "  zc = Reshape (zf, cube)\n";
  else
    b.text += "  zc = Reshape (zeros, cube)\n";
  b.text += cat("  centred = Sub (qc, zc)\n  scaled = Mul (centred, sc)\n",
                ints("flat", cat(rows, ", -1")),
                "  wide = Reshape (scaled, flat)\n  W = Slice (wide, at_0, width, axis_1)\n"
                "  Wt = Transpose <perm = [1, 0]> (W)\n  y = MatMul (A, Wt)\n",
                n.has(5) ? "  Y = Add (y, bias)\n" : "  Y = Identity (y)\n");
}

// q = integers of `from` [rows, k]; to = q * W, in numbers.
std::string quantized_product(const std::string& from, const std::string& to,
                              const std::string& w) {
  return cat("  ", to, "_q, ", to, "_s, ", to, "_z = DynamicQuantizeLinear (", from, ")\n  ", to,
             "_i = MatMulInteger (", to, "_q, ", w, ", ", to, "_z, ", w, "_zero)\n  ", to,
             "_f = Cast <to = 1> (", to, "_i)\n  ", to, "_b = Mul (", to, "_s, ", w, "_scale)\n  ",
             to, " = Mul (", to, "_f, ", to, "_b)\n");
}

// One direction (number d) of the LSTM: Y_d [steps, batch, H], h_d and c_d [1, batch, H].
std::string one_direction(const ContribNode& n, int d, bool back, int64_t hidden) {
  const std::string k = cat(d);
  auto part = [&](const std::string& from, const std::string& to) {
    return cat("  ", to, k, " = Gather <axis = 0> (", from, ", at", k, ")\n");
  };
  std::string t = cat("  at", k, " = Constant <value_int = ", d, "> ()\n") + part("W", "w") +
                  part("R", "r") + part("Ws", "w_s") + part("Wz", "w_z") + part("Rs", "r_s") +
                  part("Rz", "r_z");
  for (const char* m : {"w", "r"})
    t += cat("  ", m, k, "_scale = Identity (", m, "_s", k, ")\n  ", m, k, "_zero = Identity (", m,
             "_z", k, ")\n");
  t += quantized_product("rows", "xw" + k, "w" + k);
  t += cat("  xs", k, " = Reshape (xw", k, ", steps)\n");
  if (n.has(3))
    t += part("B", "b") + cat("  bw", k, ", br", k, " = Split <axis = 0> (b", k, ")\n  bs", k,
                              " = Add (bw", k, ", br", k, ")\n  in", k, " = Add (xs", k, ", bs", k,
                              ")\n");
  else
    t += cat("  in", k, " = Identity (xs", k, ")\n");
  t += n.has(5) ? part("H0", "h0_") : cat("  h0_", k, " = Identity (none)\n");
  t += n.has(6) ? part("C0", "c0_") : cat("  c0_", k, " = Identity (none)\n");
  t += cat("  hn", k, ", cn", k, ", ys", k,
           " = Scan <num_scan_inputs = 1, scan_input_directions = [", int(back),
           "], scan_output_directions = [", int(back), "], body = cell (float[b,", hidden,
           "] h, float[b,", hidden, "] c, float[b,", 4 * hidden, "] x) => (float[b,", hidden,
           "] h2, float[b,", hidden, "] c2, float[b,", hidden, "] y) {\n",
           quantized_product("h", "hr", "r" + k),
           "  g = Add (x, hr)\n  gi, go, gf, gc = Split <axis = 1> (g)\n  i = Sigmoid (gi)\n"
           "  o = Sigmoid (go)\n  f = Sigmoid (gf)\n  u = Tanh (gc)\n  fc = Mul (f, c)\n"
           "  iu = Mul (i, u)\n  c2 = Add (fc, iu)\n  t = Tanh (c2)\n  h2 = Mul (o, t)\n"
           "  y = Identity (h2)\n  }> (h0_",
           k, ", c0_", k, ", in", k, ")\n");
  return t;
}

void lstm(const ContribNode& n, Body& b) {
  b.inputs = "X, W, R, B, lengths, H0, C0, P, Ws, Wz, Rs, Rz", b.outputs = "Y, Y_h, Y_c";
  const onnx::AttributeProto* a = n.attr("direction");
  const std::string direction = a ? a->s() : "forward";
  const auto hidden = int64_t(n.number("hidden_size", 0));
  if (hidden < 1) b.why = "hidden_size is not given";
  if (n.has(4)) b.why = "lengths of sequences are not known";
  if (n.has(7)) b.why = "peepholes are not known";
  if (n.attr("activations") || n.attr("clip") || n.number("input_forget", 0) != 0)
    b.why = "activations, clip and input_forget are not known";
  if (!n.has(9) || !n.has(11)) b.why = "zero points are not given";
  if (n.rank(8) > 1 && n.rank(8) != 2) b.why = "its scales have more than two dimensions";
  if (!b.why.empty()) return;
  const bool both = direction == "bidirectional";
  b.text =
      "  length = Shape <start = 0, end = 1> (X)\n  batch = Shape <start = 1, end = 2> (X)\n" +
      ints("wide", cat(4 * hidden)) + ints("narrow", cat(hidden)) + ints("flat", "0, -1") +
      "  steps = Concat <axis = 0> (length, batch, wide)\n"
      "  state = Concat <axis = 0> (batch, narrow)\n  zero_ = Constant <value_float = 0.0> ()\n"
      "  none = Expand (zero_, state)\n  size = Shape <start = 2, end = 3> (X)\n" +
      ints("rest", "-1") +
      "  as_rows = Concat <axis = 0> (rest, size)\n  rows = Reshape (X, as_rows)\n" +
      one_direction(n, 0, direction == "reverse", hidden);
  if (both) b.text += one_direction(n, 1, true, hidden);
  b.text += ints("first", "0") + ints("second", "1");
  for (const auto& [from, to, axis] :
       {std::tuple("ys", "Y", "second"), std::tuple("hn", "Y_h", "first"),
        std::tuple("cn", "Y_c", "first")}) {
    b.text += cat("  ", from, "0u = Unsqueeze (", from, "0, ", axis, ")\n");
    if (both)
      b.text += cat("  ", from, "1u = Unsqueeze (", from, "1, ", axis, ")\n  ", to,
                    " = Concat <axis = ", axis == std::string("first") ? 0 : 1, "> (", from, "0u, ",
                    from, "1u)\n");
    else
      b.text += cat("  ", to, " = Identity (", from, "0u)\n");
  }
}

}  // namespace

const std::map<std::string, Maker>& quantized_makers() {
  static const std::map<std::string, Maker> all = {
      {"DequantizeLinear", dequantize_linear},
      {"QuantizeLinear", quantize_linear},
      {"QLinearAdd", binary<false>},
      {"QLinearMul", binary<true>},
      {"QLinearLeakyRelu", leaky_relu},
      {"QLinearSigmoid", sigmoid},
      {"QLinearSoftmax", softmax},
      {"QLinearGlobalAveragePool", global_average_pool},
      {"QLinearAveragePool", average_pool},
      {"QLinearConcat", concat},
      {"QLinearWhere", where},
      {"QGemm", gemm},
      {"MatMulNBits", matmul_bits},
      {"DynamicQuantizeLSTM", lstm},
  };
  return all;
}

}  // namespace onnxtrain::contrib
