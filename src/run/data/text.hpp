// Text columns: token ids and a mask by a tokenizer. The tokenizer itself travels in the model's
// metadata, so that `eval` and `predict` cut texts as the training did.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/open.hpp"
#include "model/model.hpp"

namespace onnxtrain::run {

struct TextRule {
  std::vector<std::string> columns;  // of the table; several are joined by a blank, in this order
  std::string ids, mask, types;      // inputs of the model; mask and types may be empty
  int64_t length = 0;                // tokens per row
  int64_t vocabulary = 0;            // rows of the embedding; 0: not known
  std::string tokenizer, name;       // content of tokenizer.json, and the file it came from
  // The inputs that it feeds.
  std::vector<std::string> inputs() const;
};
inline constexpr const char* kTextKey = "onnxtrain.text";

// What a file says about its text columns; none for other files.
std::optional<TextRule> text_rule(const std::map<std::string, std::string>& metadata);
std::string text_json(const TextRule& rule);

// Text as token ids int64 [n, length], and a mask with 1 for every token that is there.
class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  virtual ~Tokenizer() = default;
  virtual int64_t vocabulary() const = 0;
  virtual std::pair<Tensor, Tensor> encode(const std::vector<std::string>& texts,
                                           int64_t length) = 0;
};
// content: of tokenizer.json; name: of the file, for messages.
using TokenizerFactory =
    std::function<std::unique_ptr<Tokenizer>(const std::string& content, const std::string& name)>;
// Who makes tokenizers; OT2220 without one.
void set_tokenizer_factory(TokenizerFactory f);
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& content, const std::string& name);

// What the flags of a command ask for.
struct TextRequest {
  std::string column, tokenizer;  // column: or several, A,B; tokenizer: a file
  int64_t max_length = 0;         // 0: 128
  bool any() const { return !column.empty() || !tokenizer.empty() || max_length > 0; }
};
constexpr int64_t kUsualLength = 128;
// The content of a tokenizer file; OT2222 when it is none.
std::string read_tokenizer(const std::string& path);

// The rule for data of this model: its own, or by the flags. OT2223 when the model has no input for
// token ids, OT2224 when the flags are incomplete.
std::optional<TextRule> text_rule_for(const Model& m, const TextRequest& q);
// Rows of the embedding that the ids pick from; 0 when the graph does not show it.
int64_t embedding_rows(const Graph& g, ValueId ids);
// The columns that a request names.
std::vector<std::string> text_columns(const TextRequest& q);
// Tells the csv reader which columns are text, besides those it knows (raw_columns.hpp).
void read_text_columns(const TextRule& rule, CsvOptions& csv);
// The dataset with columns for the model's inputs. OT2221 when an id is beyond the embedding.
Dataset with_tokens(Dataset data, const TextRule& rule);

}  // namespace onnxtrain::run
