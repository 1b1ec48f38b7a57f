// Rows through operators of tables (ai.onnx.ml), and through the rarer ones of ai.onnx.
#include <algorithm>

#include "distributed/row_rules.hpp"

namespace onnxtrain::row_rules {

namespace {

constexpr const char* kFirst = "its first axis is not the rows alone";

// One number or word in, one out, by columns along the last axis.
RowResult by_column(const RowNode& n) {
  const size_t rank = n.in(0).size();
  if (!n.only_rows({0})) return no("an operand beside the first belongs to rows");
  if (rank > 1 && n.at(0).axis == int(rank) - 1) return no("its columns are the rows");
  return all_outputs(n, n.at(0).axis);
}

// A table of rows in, a line for each of them out.
RowResult table(const RowNode& n) {
  if (n.in(0).size() != 2) return no("its operand is no table of rows");
  return batch_first(n);
}

// Columns side by side.
RowResult beside(const RowNode& n) {
  for (size_t i = 0; i < n.n.inputs.size(); ++i) {
    if (n.is_rows(i) && (n.at(i).axis != 0 || n.in(i).size() != 2)) return no(kFirst);
    if (!n.is_rows(i) && !n.fits_all_rows(i, 0))
      return no("one operand has a line for every row that does not come from the rows");
  }
  return all_outputs(n, 0);
}

RowResult array_features(const RowNode& n) {
  const size_t rank = n.in(0).size();
  if (!n.only_rows({0})) return no("its columns are chosen by rows");
  if (rank < 2 || n.at(0).axis == int(rank) - 1) return no("it picks rows by their numbers");
  return all_outputs(n, n.at(0).axis);
}

// Operands that are rows have them first; the others have none.
RowResult rows_first(const RowNode& n, std::initializer_list<size_t> may) {
  if (!n.is_rows(0)) return no("its first operand has no rows");
  if (!n.only_rows(may)) return no("a weight of it belongs to rows");
  for (size_t i : may) {
    if (!n.has(i)) continue;
    if (n.is_rows(i) ? n.at(i).axis != 0 : !n.fits_all_rows(i, 0)) return no(kFirst);
  }
  return all_outputs(n, 0);
}

RowResult gather_nd(const RowNode& n) {
  const int64_t batch = n.n.i("batch_dims", 0);
  const int last = int(n.in(1).size()) - 1;
  const int picked = int(batch + n.in(1)[size_t(last)]);  // behind them rows stay whole
  if (n.is_rows(0) && !n.is_rows(1) && n.at(0).axis >= picked)
    return all_outputs(n, last + n.at(0).axis - picked);
  if (n.is_rows(1) && n.at(1).axis == last) return no("it picks elements by numbers of rows");
  if (n.is_rows(0) && n.at(0).axis >= batch) return no("it picks rows by their numbers");
  if (n.is_rows(0) && n.is_rows(1) && n.at(0).axis != n.at(1).axis)
    return no("its operands have their rows along different axes");
  if (n.is_rows(0) && !n.is_rows(1) && !n.fits_all_rows(1, n.at(0).axis))
    return no("its indices do not come from the rows");
  if (n.is_rows(1) && !n.is_rows(0) && n.at(1).axis < batch && !n.fits_all_rows(0, n.at(1).axis))
    return no("its data do not come from the rows");
  return all_outputs(n, n.is_rows(0) ? n.at(0).axis : n.at(1).axis);
}

// Into each row, at places along another axis.
RowResult scatter_elements(const RowNode& n) {
  const int over = normal(n.n.i("axis", 0), n.in(0).size());
  int axis = -1;
  for (size_t i = 0; i < 3; ++i) {
    if (!n.is_rows(i)) continue;
    if (axis >= 0 && axis != n.at(i).axis)
      return no("its operands have their rows along different axes");
    axis = n.at(i).axis;
  }
  if (axis == over) return no("it writes to rows by their numbers");
  for (size_t i = 0; i < 3; ++i) {
    if (!n.is_rows(i) && !n.fits_all_rows(i, axis))
      return no("one operand has a number for every row that does not come from the rows");
    if (n.in(i)[size_t(axis)] != n.out()[size_t(axis)]) return no("it writes to some of the rows");
  }
  return all_outputs(n, axis);
}

RowResult reverse_sequence(const RowNode& n) {
  const int64_t batch = n.n.i("batch_axis", 1);
  if (!n.is_rows(0) || n.at(0).axis != batch) return no("its rows are not where its batch is");
  if (n.is_rows(1) ? n.at(1).axis != 0 : !n.fits_all_rows(1, 0))
    return no("its lengths are not rows");
  return all_outputs(n, int(batch));
}

// The axes that a transform works along are its last ones.
RowResult last_axes(const RowNode& n, size_t count) {
  if (!n.only_rows({0})) return no("an operand beside the first belongs to rows");
  if (n.at(0).axis + int(count) >= int(n.in(0).size())) return no("it works along the rows");
  return all_outputs(n, n.at(0).axis);
}

RowResult dft(const RowNode& n) {
  if (n.n.version < 20) return along(n, n.n.i("axis", 1));
  if (!n.has(2)) return along(n, -2);
  const Tensor* axis = n.constant(2);
  return axis ? along(n, axis->to_ints().at(0)) : no("its axis is not a constant");
}

// Letters of the operands and of the result; empty: an equation with an ellipsis, or none.
std::vector<std::string> letters(const RowNode& n) {
  std::string text = n.n.s("equation", "");
  std::erase(text, ' ');
  if (text.find('.') != text.npos) return {};
  const size_t arrow = text.find("->");
  std::vector<std::string> terms(1);
  for (char c : text.substr(0, arrow))
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  std::string out;
  if (arrow != text.npos) {
    out = text.substr(arrow + 2);
  } else {
    std::string all;
    for (const std::string& t : terms) all += t;
    std::sort(all.begin(), all.end());
    for (char c : all)
      if (std::count(all.begin(), all.end(), c) == 1) out += c;
  }
  terms.push_back(out);
  return terms;
}

RowResult einsum(const RowNode& n) {
  const std::vector<std::string> terms = letters(n);
  if (terms.size() != n.n.inputs.size() + 1) return no("its equation has an ellipsis");
  char letter = 0;
  for (size_t i = 0; i < n.n.inputs.size(); ++i) {
    if (!n.is_rows(i)) continue;
    const char c = terms[i].at(size_t(n.at(i).axis));
    if (letter != 0 && c != letter) return no("it pairs every row with every row");
    if (std::count(terms[i].begin(), terms[i].end(), c) > 1) return no("it picks rows by number");
    letter = c;
  }
  const size_t at = terms.back().find(letter);
  for (size_t i = 0; i < n.n.inputs.size(); ++i) {
    const size_t axis = terms[i].find(letter);
    if (n.is_rows(i) || axis == std::string::npos) continue;
    if (at == std::string::npos) return no("it adds over the rows of one operand only");
    if (!n.fits_all_rows(i, int(axis)))
      return no("one operand has a number for every row that does not come from the rows");
  }
  if (at == std::string::npos) return {{RowClass::partial()}, {}};
  return all_outputs(n, int(at));
}

}  // namespace

void add_rules_of_tables(Rules& r) {
  for (const char* name : {"Imputer", "Scaler", "Binarizer", "OneHotEncoder"}) r[name] = by_column;
  for (const char* name : {"LabelEncoder", "CategoryMapper", "RegexFullMatch"})
    r[name] = elementwise;
  r["StringConcat"] = elementwise;
  r["FeatureVectorizer"] = beside;
  r["ArrayFeatureExtractor"] = array_features;
  for (const char* name :
       {"Normalizer", "LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor",
        "TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble", "TfIdfVectorizer"})
    r[name] = table;
}

void add_rarer_rules(Rules& r) {
  for (const char* name :
       {"Acos",       "Acosh",      "Asin",       "Asinh",     "Atan",
        "Atanh",      "Cosh",       "Sinh",       "Tan",       "PRelu",
        "Shrink",     "BitwiseNot", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
        "And",        "Or",         "Xor",        "Affine",    "ParametricSoftplus",
        "ScaledTanh", "Scale"})
    r[name] = elementwise;
  r["Einsum"] = einsum;
  r["GatherND"] = gather_nd;
  r["ScatterElements"] = r["Scatter"] = scatter_elements;
  r["ReverseSequence"] = reverse_sequence;
  r["DFT"] = dft;
  r["Det"] = [](const RowNode& n) { return last_axes(n, 2); };
  r["CenterCropPad"] = keeps_length;
  r["ConvInteger"] = r["QLinearConv"] = [](const RowNode& n) { return rows_first(n, {0}); };
  r["MatMulInteger"] = [](const RowNode& n) {
    return n.only_rows({0}) ? matmul(n) : no("its weights or zero points belong to rows");
  };
  for (const char* name : {"Col2Im", "AffineGrid", "STFT"}) r[name] = batch_first;
  r["DeformConv"] = [](const RowNode& n) { return rows_first(n, {0, 2, 4}); };
  r["RotaryEmbedding"] = [](const RowNode& n) {
    // position_ids, where they are given; the caches then have no rows
    return n.has(3) ? rows_first(n, {0, 3}) : rows_first(n, {0, 1, 2});
  };
  for (const char* name : {"RoiAlign", "MaxRoiPool"})
    r[name] = [](const RowNode&) { return no("its regions name rows by their numbers"); };
  r["DynamicQuantizeLinear"] = [](const RowNode&) {
    return no("its scale is that of the whole batch");
  };
}

}  // namespace onnxtrain::row_rules
