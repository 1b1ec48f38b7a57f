// Copies, moves and destruction of attributes: instantiated here alone.
#include "graph/graph.hpp"

namespace onnxtrain {

Attr::Attr() = default;
Attr::Attr(const Attr& other) = default;
Attr::Attr(Attr&& other) noexcept = default;
Attr& Attr::operator=(const Attr& other) = default;
Attr& Attr::operator=(Attr&& other) noexcept = default;
Attr::~Attr() = default;

Attributes::Attributes() = default;
Attributes::Attributes(std::initializer_list<value_type> entries) : Base(entries) {}
Attributes::Attributes(const Attributes& other) = default;
Attributes::Attributes(Attributes&& other) noexcept = default;
Attributes& Attributes::operator=(const Attributes& other) = default;
Attributes& Attributes::operator=(Attributes&& other) noexcept = default;
Attributes::~Attributes() = default;

Attr& Attributes::operator[](std::string_view key) {
  auto it = find(key);
  return it != end() ? it->second : try_emplace(std::string(key)).first->second;
}

}  // namespace onnxtrain
