// The exchange of the block that a thread computes.
#include "core/block_exchange.hpp"

namespace onnxtrain {

namespace {
thread_local BlockExchange* t_exchange = nullptr;
}

BlockExchange* BlockExchange::current() { return t_exchange; }

BlockExchangeScope::BlockExchangeScope(BlockExchange* exchange) : before_(t_exchange) {
  t_exchange = exchange;
}
BlockExchangeScope::~BlockExchangeScope() { t_exchange = before_; }

}  // namespace onnxtrain
