// The rules by operator.
#include "op/channels_last.hpp"

#include <algorithm>
#include <map>

namespace onnxtrain {

namespace {
std::map<std::string, ChannelsLast, std::less<>>& rules() {
  static auto* r = new std::map<std::string, ChannelsLast, std::less<>>;
  return *r;
}
}  // namespace

void set_channels_last(std::string_view domain, std::string_view op, ChannelsLast rule) {
  rules()[cat(domain, ":", op)] = std::move(rule);
}

const ChannelsLast& channels_last_rule(const Op& op) {
  static const ChannelsLast none, indifferent{.elementwise = true};
  auto it = rules().find(op.domain + ":" + op.name);
  if (it != rules().end()) return it->second;
  return op.broadcasts || op.micro_op >= 0 ? indifferent : none;
}

Shape to_channels_last(const Shape& s) {
  Shape r = s;
  if (s.size() > 2) std::rotate(r.begin() + 1, r.begin() + 2, r.end());
  return r;
}

Shape from_channels_last(const Shape& s) {
  Shape r = s;
  if (s.size() > 2) std::rotate(r.begin() + 1, r.end() - 1, r.end());
  return r;
}

}  // namespace onnxtrain
