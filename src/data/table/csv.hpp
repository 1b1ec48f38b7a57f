// csv and tsv: separator, header, numbers and text are found out; what was found is noted.
#pragma once
#include <optional>

#include "data/columns/dataset.hpp"
#include "data/table/dates.hpp"
#include "data/table/number_form.hpp"

namespace onnxtrain {

// A column that feeds an input of its own, as the model wants it.
struct CsvColumn {
  enum class Kind { kNumber, kText, kDate } kind = Kind::kNumber;
  std::string name;
  DateOrder order = DateOrder::kMonthFirst;
  NumberForm form;                      // of numbers
  bool missing = false;                 // numbers may be missing: they become NaN
  std::vector<std::string> categories;  // texts that the model knows; empty: not known
};

struct TableProfile;

struct CsvOptions {
  std::string encoding;  // utf-8, utf-16, latin1, cp1252; empty: UTF-8, or what the file says
  char separator = 0;    // 0: found out
  // What the data of a run needed, where the two above are not given: for text that is not UTF-8,
  // and where the first line holds it.
  std::string usual_encoding, usual_separator;
  // Columns to predict: names or indices (-1 = last), also several in one text with commas; empty:
  // decided from the file.
  std::vector<std::string> targets;
  std::vector<std::string> drop;  // columns that are left out, written alike
  // Columns that are targets when the table has them and none is named (--map TARGET=COLUMN).
  std::vector<std::string> mapped;
  bool no_target = false;  // targets need not be there (predict), none is decided
  // The columns of 'x', in this order; empty: all but targets and those left out.
  std::vector<std::string> features;
  // What the target holds: names of class 0, 1, ...; an empty list: numbers. None: found out.
  std::optional<std::vector<std::string>> classes;
  // Of several targets: columns of text are classes, each with names of its own; those that a run
  // knows.
  bool text_among = false;
  std::map<std::string, std::vector<std::string>> target_classes;
  // How the numbers of a target are written, where a run knows it.
  std::map<std::string, NumberForm> target_forms;
  bool of_run = false;   // targets and features are those that a run was trained on
  int64_t width = 0;     // features that the model takes; 0: not known
  bool missing = false;  // numbers of 'x' may be missing: they become NaN
  // Not empty: these columns by themselves instead of 'x'; text that is missing is "".
  std::vector<CsvColumn> columns;
  // Not null: only to look. The features are described there, the dataset has the targets alone.
  TableProfile* profile = nullptr;
};

// Columns: 'x' [rows, features] double, 'y' [rows] or [rows, targets], int64 (class ids or whole
// numbers) or double, and every numeric column under its own name.
Dataset parse_csv(std::string_view text, const std::string& source, const CsvOptions& options);

// The encoding to read a text with: as the options say, or the usual one where the text is neither
// UTF-8 nor says what it is.
std::string csv_encoding(std::string_view text, const CsvOptions& options);
// The text in UTF-8, `store` holds it when it had to be converted. OT2125 when it is another
// encoding than said, OT0032 when there is no such encoding.
std::string_view csv_utf8(std::string_view text, const std::string& source,
                          const std::string& encoding, std::string& store);
// What is to be said about the encoding that csv_encoding chose; "": nothing.
std::string encoding_note(std::string_view text, const CsvOptions& options);
// The separator that a flag names (",", "tab", ";"); OT0033.
char csv_separator(const std::string& word);
std::string csv_separator_word(char separator);  // the other way round; 0: ""
// Can these be given?
bool is_csv_encoding(const std::string& encoding);
bool is_utf16_encoding(const std::string& encoding);
bool is_csv_separator(const std::string& word);

// Records of a csv text, one after the other.
class CsvReader {
 public:
  CsvReader(std::string_view text, char separator, const std::string& source);
  // The fields are valid until the next call. Empty lines are passed over.
  bool next(std::vector<std::string_view>& fields);
  int64_t line() const { return record_line_; }  // where the last record began, from 1

 private:
  std::string_view quoted_field(std::string& store);
  std::string_view text_;
  char separator_;
  const std::string& source_;
  size_t at_ = 0;
  int64_t line_ = 1, record_line_ = 1;
  std::vector<std::string> stores_;  // quoted fields without their quotes
};

char sniff_separator(std::string_view text);
// A number with optional blanks around it; nullopt for anything else (also for a missing value).
std::optional<double> csv_number(std::string_view field);
bool csv_missing(std::string_view field);  // "", NA, nan, null, ?
// A mark that means "nothing" among numbers or dates; a text like any other elsewhere.
bool csv_dash(std::string_view field);
// All of both.
std::vector<std::string> csv_missing_words();
std::string_view csv_trimmed(std::string_view field);  // without blanks around it

}  // namespace onnxtrain
