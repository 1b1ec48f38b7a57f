// Attention and MultiHeadAttention of com.microsoft: softmax(scale Q K' + mask) V per head.
#include "onnx/functions/contrib_attention.hpp"

#include "core/error.hpp"

namespace onnxtrain::contrib {

namespace {

// [batch, rows, heads * width] -> [batch, heads, rows, width]
std::string by_head(const std::string& from, const std::string& to) {
  return cat("  ", to, "_r = Reshape (", from, ", heads)\n  ", to,
             " = Transpose <perm = [0, 2, 1, 3]> (", to, "_r)\n");
}

// Adds `filter` to the scores of keys that are not there. `mask`: numbers of keys [batch], or 1
// where a key is there: [batch, keys], [batch, rows, keys].
void add_mask(int rank, const std::string& mask, double filter, Body& b) {
  if (rank < 1 || rank > 3) {
    b.why = cat("its mask has ",
                rank < 0 ? "a rank that the file does not say" : cat(rank, " dimensions"));
    return;
  }
  if (rank == 1)
    b.text += cat("  count_shape = Concat <axis = 0> (batch, one_1)\n  counts_ = Reshape (", mask,
                  ", count_shape)\n  counts = Cast <to = 7> (counts_)\n"
                  "  key_n = Range (zero_0, keys_0, one_0)\n  there = Less (key_n, counts)\n");
  else
    b.text += cat("  there = Cast <to = 9> (", mask, ")\n");
  b.text += ints("where_", rank == 3 ? "1" : "1, 2") + constant("filter", filter, "q");
  b.text += constant("nothing", 0, "q") +
            "  penalty_ = Where (there, nothing, filter)\n"
            "  penalty = Unsqueeze (penalty_, where_)\n  masked = Add (raw, penalty)\n";
}

// From q, k, v of [batch, heads, rows, width] to Y; sizes of the mask and the bias are checked by
// broadcasting.
void attend(const ContribNode& n, size_t mask, const char* mask_name, bool bias, Body& b) {
  b.text += "  zero_0 = Constant <value_int = 0> ()\n  one_0 = Constant <value_int = 1> ()\n" +
            ints("one_1", "1") +
            "  batch = Shape <start = 0, end = 1> (q)\n  rows = Shape <start = 2, end = 3> (q)\n"
            "  keys = Shape <start = 2, end = 3> (k)\n  keys_0 = Squeeze (keys)\n"
            "  rows_0 = Squeeze (rows)\n";
  const double scale = n.number("scale", 0);
  if (scale != 0)
    b.text += constant("scale", scale, "q");
  else
    b.text +=
        "  width = Shape <start = 3, end = 4> (q)\n  width_f = CastLike (width, q)\n"
        "  root = Sqrt (width_f)\n  scale = Reciprocal (root)\n";
  b.text +=
      "  kt = Transpose <perm = [0, 1, 3, 2]> (k)\n  qk = MatMul (q, kt)\n"
      "  raw = Mul (qk, scale)\n";
  if (n.has(mask))
    add_mask(n.rank(mask), mask_name, n.number("mask_filter_value", -10000), b);
  else
    b.text += "  masked = Identity (raw)\n";
  b.text += bias ? "  biased = Add (masked, attention_bias)\n" : "  biased = Identity (masked)\n";
  if (n.number("unidirectional", 0) != 0)
    b.text +=
        "  row_n = Range (zero_0, rows_0, one_0)\n  column = Range (zero_0, keys_0, one_0)\n"
        "  ahead = Sub (keys_0, rows_0)\n  last_ = Add (row_n, ahead)\n" +
        ints("at_1", "1") + "  last = Unsqueeze (last_, at_1)\n" +
        "  allowed = LessOrEqual (column, last)\n" + constant("never", -3.4028234e38, "q") +
        "  scores = Where (allowed, biased, never)\n";
  else
    b.text += "  scores = Identity (biased)\n";
  b.text +=
      "  p = Softmax <axis = -1> (scores)\n  o = MatMul (p, v)\n"
      "  ot = Transpose <perm = [0, 2, 1, 3]> (o)\n" +
      ints("flat", "0, 0, -1") + "  Y = Reshape (ot, flat)\n";
}

// k or v: what is given now, behind what was given before
std::string with_past(const std::string& v, bool past) {
  return past ? cat("  ", v, " = Concat <axis = 2> (", v, "_past, ", v, "_now)\n")
              : cat("  ", v, " = Identity (", v, "_now)\n");
}

int64_t heads_of(const ContribNode& n, Body& b) {
  const auto heads = int64_t(n.number("num_heads", 0));
  if (heads < 1) b.why = cat("num_heads is ", heads);
  return heads;
}

}  // namespace

void attention(const ContribNode& n, Body& b) {
  b.inputs = "input, weights, bias, mask, past, attention_bias, past_length";
  b.outputs = "Y, present";
  if (n.has(6)) b.why = "a buffer of the past that is shared is not known";
  if (n.number("do_rotary", 0) != 0) b.why = "rotary positions are not known";
  const int64_t heads = heads_of(n, b);
  if (!b.why.empty()) return;
  b.text = ints("heads", cat("0, 0, ", heads, ", -1")) + "  all_ = MatMul (input, weights)\n";
  b.text += n.has(2) ? "  all = Add (all_, bias)\n" : "  all = Identity (all_)\n";
  if (const onnx::AttributeProto* sizes = n.attr("qkv_hidden_sizes");
      sizes && sizes->ints_size() == 3)
    b.text += ints("sizes", cat(sizes->ints(0), ", ", sizes->ints(1), ", ", sizes->ints(2))) +
              "  q_, k_, v_ = Split <axis = 2> (all, sizes)\n";
  else
    b.text += "  q_, k_, v_ = Split <axis = 2> (all)\n";
  b.text += by_head("q_", "q") + by_head("k_", "k_now") + by_head("v_", "v_now");
  if (n.has(4))  // [2, batch, heads, rows, width]
    b.text +=
        "  past_0 = Constant <value_int = 0> ()\n  past_1 = Constant <value_int = 1> ()\n"
        "  k_past = Gather (past, past_0)\n  v_past = Gather (past, past_1)\n";
  b.text += with_past("k", n.has(4)) + with_past("v", n.has(4));
  b.text += ints("front", "0") +
            "  k_front = Unsqueeze (k, front)\n  v_front = Unsqueeze (v, front)\n"
            "  present = Concat <axis = 0> (k_front, v_front)\n";
  attend(n, 3, "mask", n.has(5), b);
}

void multi_head_attention(const ContribNode& n, Body& b) {
  b.inputs =
      "query, key, value, bias, mask, attention_bias, k_past, v_past, past_length, "
      "indirection";
  b.outputs = "Y, present_key, present_value, qk_";
  if (n.has(8) || n.has(9)) b.why = "a buffer of the past that is shared is not known";
  if (n.has(6) != n.has(7)) b.why = "it has only one of past keys and past values";
  if (n.wants(3)) b.why = "its output of scores is not known";
  if (!n.has(1) || !n.has(2)) b.why = "queries, keys and values in one tensor are not known";
  const int kv = n.rank(1);
  if (b.why.empty() && (n.rank(0) != 3 || n.rank(2) != kv || (kv != 3 && kv != 4)))
    b.why = "it is known for queries of 3 and keys and values of 3 or 4 dimensions";
  if (b.why.empty() && n.has(3) && kv == 4) b.why = "a bias with keys of 4 dimensions is not known";
  const int64_t heads = heads_of(n, b);
  if (!b.why.empty()) return;
  b.text = ints("heads", cat("0, 0, ", heads, ", -1"));
  if (n.has(3))
    b.text += ints("from", "0") + ints("axis_0", "0") + ints("end", "9223372036854775807") +
              "  dq = Shape <start = 2, end = 3> (query)\n  dk = Shape <start = 2, end = 3> (key)\n"
              "  dqk = Add (dq, dk)\n  bq = Slice (bias, from, dq, axis_0)\n"
              "  bk = Slice (bias, dq, dqk, axis_0)\n  bv = Slice (bias, dqk, end, axis_0)\n"
              "  q_ = Add (query, bq)\n  k_ = Add (key, bk)\n  v_ = Add (value, bv)\n";
  else
    b.text += "  q_ = Identity (query)\n  k_ = Identity (key)\n  v_ = Identity (value)\n";
  b.text += by_head("q_", "q");
  b.text += kv == 3 ? by_head("k_", "k_now") + by_head("v_", "v_now")
                    : "  k_now = Identity (k_)\n  v_now = Identity (v_)\n";
  b.text += with_past("k", n.has(6)) + with_past("v", n.has(6));
  b.text += "  present_key = Identity (k)\n  present_value = Identity (v)\n";
  attend(n, 4, "mask", n.has(5), b);
  b.text += "  qk_ = Identity (scores)\n";
}

}  // namespace onnxtrain::contrib
