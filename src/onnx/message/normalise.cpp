// Unknown dimensions and the order of nodes.
#include "onnx/message/normalise.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/graph.hpp"

namespace onnxtrain {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using Names = std::unordered_set<std::string>;

// ------------------------------------------------------------------ dimensions

void clear_unknown(onnx::TypeProto* type) {
  onnx::TensorShapeProto* shape = nullptr;
  switch (type->value_case()) {
    case onnx::TypeProto::kTensorType:
      if (type->tensor_type().has_shape()) shape = type->mutable_tensor_type()->mutable_shape();
      break;
    case onnx::TypeProto::kSparseTensorType:
      if (type->sparse_tensor_type().has_shape())
        shape = type->mutable_sparse_tensor_type()->mutable_shape();
      break;
    case onnx::TypeProto::kSequenceType:
      return clear_unknown(type->mutable_sequence_type()->mutable_elem_type());
    case onnx::TypeProto::kOptionalType:
      return clear_unknown(type->mutable_optional_type()->mutable_elem_type());
    case onnx::TypeProto::kMapType:
      return clear_unknown(type->mutable_map_type()->mutable_value_type());
    default:
      return;
  }
  if (shape == nullptr) return;
  for (auto& d : *shape->mutable_dim())
    if (d.has_dim_value() && d.dim_value() < 1) d.clear_dim_value();
}

void clear_unknown(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>* list) {
  for (auto& v : *list)
    if (v.has_type()) clear_unknown(v.mutable_type());
}

// ------------------------------------------------------------------ order

// The names that a node reads in the graph it stands in: inputs, what Gradient names, and what its
// subgraphs capture.
void add_reads(const onnx::NodeProto& n, Names& reads);

void add_captures(const onnx::GraphProto& g, Names& reads) {
  Names inner;
  for (const auto& n : g.node()) add_reads(n, inner);
  for (const auto& o : g.output()) inner.insert(o.name());
  for (const auto& n : g.node())
    for (const auto& o : n.output()) inner.erase(o);
  for (const auto& v : g.input()) inner.erase(v.name());
  for (const auto& t : g.initializer()) inner.erase(t.name());
  for (const auto& t : g.sparse_initializer()) inner.erase(t.values().name());
  reads.merge(inner);
}

void add_reads(const onnx::NodeProto& n, Names& reads) {
  for (const auto& name : n.input())
    if (!name.empty()) reads.insert(name);
  const bool gradient = n.op_type() == "Gradient" && n.domain() == kTrainingDomain;
  for (const auto& a : n.attribute()) {
    if (a.has_g()) add_captures(a.g(), reads);
    for (const auto& g : a.graphs()) add_captures(g, reads);
    if (!gradient) continue;
    if (a.name() == "y") reads.insert(a.s());
    if (a.name() == "xs" || a.name() == "zs") reads.insert(a.strings().begin(), a.strings().end());
  }
}

// Who must stand before whom, by place in the list.
struct Order {
  std::vector<std::vector<int>> readers;  // by producer
  std::vector<int> waiting;               // by reader: producers that have not run
  bool in_order = true;
};

Order find_order(const Nodes& nodes) {
  std::unordered_map<std::string, int> producer;
  for (int i = 0; i < nodes.size(); ++i)
    for (const auto& o : nodes[i].output())
      if (!o.empty()) producer.emplace(o, i);
  Order order;
  order.readers.resize(size_t(nodes.size()));
  order.waiting.assign(size_t(nodes.size()), 0);
  Names reads;
  std::vector<int> before;
  for (int i = 0; i < nodes.size(); ++i) {
    reads.clear();
    before.clear();
    add_reads(nodes[i], reads);
    for (const auto& name : reads)
      if (auto it = producer.find(name); it != producer.end()) before.push_back(it->second);
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    for (int k : before) {
      order.readers[size_t(k)].push_back(i);
      ++order.waiting[size_t(i)];
      if (k >= i) order.in_order = false;
    }
  }
  return order;
}

// Of the nodes that can run, the one that stands first in the file comes first.
void sort_nodes(Nodes* nodes) {
  Order order = find_order(*nodes);
  if (order.in_order) return;
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes->size(); ++i)
    if (order.waiting[size_t(i)] == 0) ready.push(i);
  std::vector<int> sorted;
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    sorted.push_back(i);
    for (int reader : order.readers[size_t(i)])
      if (--order.waiting[size_t(reader)] == 0) ready.push(reader);
  }
  for (int i = 0; i < nodes->size(); ++i)  // in or behind a cycle, which the checker names
    if (order.waiting[size_t(i)] > 0) sorted.push_back(i);
  std::vector<onnx::NodeProto*> all(size_t(nodes->size()));
  nodes->ExtractSubrange(0, nodes->size(), all.data());
  for (int i : sorted) nodes->AddAllocated(all[size_t(i)]);
}

void normalise_graph(onnx::GraphProto* g);

void normalise_nodes(Nodes* nodes) {
  for (auto& n : *nodes)
    for (auto& a : *n.mutable_attribute()) {
      if (a.has_g()) normalise_graph(a.mutable_g());
      for (auto& g : *a.mutable_graphs()) normalise_graph(&g);
      if (a.has_tp()) clear_unknown(a.mutable_tp());
    }
  sort_nodes(nodes);
}

void normalise_graph(onnx::GraphProto* g) {
  clear_unknown(g->mutable_input());
  clear_unknown(g->mutable_output());
  clear_unknown(g->mutable_value_info());
  normalise_nodes(g->mutable_node());
}

}  // namespace

void normalise(onnx::ModelProto& m) {
  if (m.has_graph()) normalise_graph(m.mutable_graph());
  for (auto& f : *m.mutable_functions()) {
    clear_unknown(f.mutable_value_info());
    normalise_nodes(f.mutable_node());
  }
  for (auto& t : *m.mutable_training_info()) {
    if (t.has_initialization()) normalise_graph(t.mutable_initialization());
    if (t.has_algorithm()) normalise_graph(t.mutable_algorithm());
  }
}

}  // namespace onnxtrain
