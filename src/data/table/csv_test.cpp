#include "data/table/csv.hpp"

#include "data/test_files.hpp"

namespace onnxtrain {
namespace {

using namespace test;

class CsvTest : public DataTest {
 protected:
  Dataset csv(const std::string& text, const CsvOptions& options = {}) {
    return parse_csv(text, "t.csv", options);
  }
  Error failure(const std::string& text, CsvOptions options = {}) {
    return error_of([&] { csv(text, options); });
  }
};

using Doubles = std::vector<double>;
using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;

TEST_F(CsvTest, HeaderAndTextTarget) {
  const Dataset d = csv("a,b,species\n1,2,cat\n3,4.5,ant\n5,6,cat\n");
  EXPECT_EQ(d.rows(), 3);
  EXPECT_EQ(d.gather_all("x").to_doubles(), (Doubles{1, 2, 3, 4.5, 5, 6}));
  EXPECT_EQ(d.gather_all("y").to_ints(), (Ints{1, 0, 1}));
  EXPECT_EQ(d.class_names("y"), (Strings{"ant", "cat"}));
  EXPECT_EQ(d.feature_names("x"), (Strings{"a", "b"}));
  EXPECT_EQ(d.gather_all("b").to_doubles(), (Doubles{2, 4.5, 6}));
  EXPECT_EQ(d.notes().size(), 1u);
  // the only text column is the target wherever it stands
  EXPECT_EQ(csv("kind,a\nx,1\ny,2\n").gather_all("x").to_doubles(), (Doubles{1, 2}));
}

TEST_F(CsvTest, WhatTheRunNeeded) {
  CsvOptions o;
  o.usual_encoding = "latin1";
  o.usual_separator = ":";
  o.features = {
      "gr\xC3\xB6\xC3\x9F"
      "e"};
  o.targets = {"y"};
  const std::string utf8 =
      "gr\xC3\xB6\xC3\x9F"
      "e:y\n1:2\n3:4\n";
  const Dataset a =
                    csv("gr\xF6\xDF"
                        "e:y\n1:2\n3:4\n",
                        o),
                b = csv(utf8, o);
  EXPECT_EQ(a.reading().encoding, "latin1");
  EXPECT_EQ(b.reading().encoding, "");
  EXPECT_EQ(b.reading().separator, ":");
  EXPECT_EQ(a.gather_all("x").to_doubles(), b.gather_all("x").to_doubles());
  EXPECT_EQ(a.notes().size(), 1u);
  // the columns are there under what is found out
  const Dataset commas =
      csv("gr\xF6\xDF"
          "e,y\n1,2\n3,4\n",
          o);
  EXPECT_EQ(commas.gather_all("x").to_doubles(), (Doubles{1, 3}));
  o.encoding = "utf-8";
  EXPECT_EQ(failure("gr\xF6\xDF"
                    "e:y\n1:2\n3:4\n",
                    o)
                .code(),
            "OT2125");
  for (const char* word : {"latin1", "cp1252", "UTF-16", ""}) EXPECT_TRUE(is_csv_encoding(word));
  EXPECT_FALSE(is_csv_encoding("koi8"));
  EXPECT_FALSE(is_csv_separator("::"));
  for (char c : {'\t', ' ', ';'}) EXPECT_EQ(csv_separator(csv_separator_word(c)), c);
}

TEST_F(CsvTest, Dialects) {
  const Doubles want = {1, 2, 4, 5};
  for (std::string text : {"1,2,3\n4,5,6\n", "1,2,3\r\n4,5,6", "1;2;3\n4;5;6\n",
                           "1\t2\t3\n4\t5\t6\n", "\xEF\xBB\xBF\x31|2|3\n\n4|5|6\n\n",
                           "\"1\",\"2\",\"3\"\n4, 5 ,+6\n", "1e0,2.0,3\n.4e1,5,6\n"}) {
    const Dataset d = csv(text);
    EXPECT_EQ(d.gather_all("x").to_doubles(), want) << text;
    EXPECT_EQ(d.gather_all("y").to_ints(), (Ints{3, 6})) << text;
  }
  EXPECT_EQ(csv("1\t2\n").format(), "tsv");
  const Dataset quoted = csv("v,name\n1,\"a,\"\"b\"\"\nc\"\n2,d\n");
  EXPECT_EQ(quoted.class_names("y"), (Strings{"a,\"b\"\nc", "d"}));
}

TEST_F(CsvTest, Targets) {
  const std::string text = "a,b,c\n1,0.5,3\n4,0.25,6\n";
  CsvOptions o;
  for (std::string target : {"b", "1", "-2"}) {
    o.targets = {target};
    EXPECT_EQ(csv(text, o).gather_all("y").to_doubles(), (Doubles{0.5, 0.25}));
    EXPECT_EQ(csv(text, o).gather_all("x").to_doubles(), (Doubles{1, 3, 4, 6}));
  }
  o.targets = {"bb"};
  EXPECT_EQ(failure(text, o).code(), "OT2105");
  EXPECT_EQ(failure(text, o).hint(), "--target b");
  o = {};
  o.no_target = true;
  EXPECT_FALSE(csv(text, o).has("y"));
  o.features = {"c", "a"};
  EXPECT_EQ(csv(text, o).gather_all("x").to_doubles(), (Doubles{3, 1, 6, 4}));
  EXPECT_EQ(csv("1,2\n3,4\n").feature_names("x"), (Strings{"0"}));
}

TEST_F(CsvTest, SeveralTargetsAndColumnsLeftOut) {
  const std::string text = "id,a,t,b,u\n1,2,3,4,5\n6,7,8,9,10.5\n";
  CsvOptions o;
  o.targets = {"u, t"};
  o.drop = {"id"};
  const Dataset d = csv(text, o);
  EXPECT_EQ(d.gather_all("y").to_doubles(), (Doubles{5, 3, 10.5, 8}));
  EXPECT_EQ(d.gather_all("y").shape(), (Shape{2, 2}));
  EXPECT_EQ(d.feature_names("x"), (Strings{"a", "b"}));
  EXPECT_EQ(d.targets(), (Strings{"u", "t"}));
  EXPECT_EQ(d.dropped(), (Strings{"id"}));
  o.drop = {"idd"};
  EXPECT_EQ(failure(text, o).hint(), "--drop id");
  o.drop = {"u"};
  EXPECT_EQ(failure(text, o).code(), "OT2105");
  // a column may be called with a comma
  o = {};
  o.targets = {"a,b"};
  EXPECT_EQ(csv("\"a,b\",c\n1,2\n3,4\n", o).gather_all("y").to_ints(), (Ints{1, 3}));
}

TEST_F(CsvTest, AsTheRunReadsIt) {
  CsvOptions o;
  o.of_run = true;
  o.features = {"a", "b"};
  o.targets = {"kind"};
  o.classes = Strings{"x", "y", "z"};
  const Dataset d = csv("kind,b,more,a\nz,1,0,2\ny ,3,0,4\n", o);
  EXPECT_EQ(d.gather_all("x").to_doubles(), (Doubles{2, 1, 4, 3}));
  EXPECT_EQ(d.gather_all("y").to_ints(), (Ints{2, 1}));
  EXPECT_EQ(d.class_names("y"), *o.classes);
  Error e = failure("kind,b,a\nx,1,2\nw,3,4\n", o);
  EXPECT_EQ(e.code(), "OT2114");
  EXPECT_NE(e.message().find("'w' in 't.csv' line 3, column 'kind'"), std::string::npos);
  EXPECT_EQ(failure("b,a\n1,2\n", o).code(), "OT2160");
  EXPECT_EQ(failure("kind,a\nx,2\n", o).code(), "OT2160");
  o.no_target = true;  // predict
  EXPECT_EQ(csv("b,a\n1,2\n", o).gather_all("x").to_doubles(), (Doubles{2, 1}));
  EXPECT_EQ(csv("kind,b,a\nw,1,2\n", o).gather_all("x").to_doubles(), (Doubles{2, 1}));
  o.no_target = false;
  o.classes = Strings();  // the run learnt numbers
  EXPECT_EQ(failure("kind,b,a\nx,1,2\n", o).code(), "OT2124");
  o.targets.clear();  // a run that does not say: never one of its features
  EXPECT_EQ(failure("b,a\n1,2\n", o).code(), "OT2160");
  EXPECT_EQ(csv("b,t,a\n1,7,2\n", o).gather_all("y").to_ints(), (Ints{7}));
}

TEST_F(CsvTest, NumbersAsClassesOfARun) {
  CsvOptions o;
  o.classes = Strings{"1", "2", "3"};
  EXPECT_EQ(csv("a,y\n5,3\n6,1.0\n", o).gather_all("y").to_ints(), (Ints{2, 0}));
  EXPECT_EQ(failure("a,y\n5,0\n", o).code(), "OT2114");
}

TEST_F(CsvTest, NumbersAsHeaderAndRowNumbers) {
  EXPECT_EQ(csv("0,1,label\n5,6,1\n7,8,0\n").rows(), 2);
  EXPECT_EQ(csv(",a,b\n0,5,1\n1,6,0\n").gather_all("x").to_doubles(), (Doubles{5, 6}));
  EXPECT_EQ(csv("5.1,3.5,setosa\n4.9,3,virginica\n").rows(), 2);  // no header
}

TEST_F(CsvTest, BadRowsAreNamed) {
  Error e = failure("a,b,c\n1,2,0\n1,,1\n");
  EXPECT_EQ(e.code(), "OT2121");
  EXPECT_NE(e.message().find("line 3, column 'b'"), std::string::npos) << e.message();
  CsvOptions options;
  options.targets = {"c"};
  e = failure("a,city,c\n1,Rome,0\n2,Oslo,1\n", options);
  EXPECT_EQ(e.code(), "OT2124");
  EXPECT_NE(e.message().find("'Rome' in 't.csv' line 2, column 'city'"), std::string::npos);
  EXPECT_EQ(e.hint(), "leave the column out:  --drop city");
  e = failure("a,b\n1,2\n3\n");
  EXPECT_EQ(e.code(), "OT2122");
  EXPECT_NE(e.message().find("line 3 has 1 field, the first line has 2"), std::string::npos);
  EXPECT_EQ(failure("a,b\n1,\"2\n3,4\n").code(), "OT2123");
  EXPECT_EQ(failure("a,b\n").code(), "OT2101");
  EXPECT_EQ(failure("").code(), "OT2101");
  EXPECT_EQ(failure(std::string("1,2\n3,\0004\n", 9)).code(), "OT2125");
  EXPECT_EQ(failure("a,b\n1,caf\xE9\n").code(), "OT2125");
  EXPECT_EQ(failure("\xFF\xFE"
                    "1,2")
                .code(),
            "OT2125");
  EXPECT_EQ(failure("a,b\n1,2\nnan,4\n").code(), "OT2121");
}

TEST_F(CsvTest, TargetsWithUnits) {
  std::string text = "a,price\n", few = text;
  for (int i = 0; i < 30; ++i) {
    text += cat("1,\"$", i + 1, ",000.50\"\n");
    few += cat("1,$", i % 3, "\n");
  }
  CsvOptions o;
  o.targets = {"price"};
  const Dataset d = csv(text, o);
  EXPECT_EQ(d.gather_all("y").to_doubles()[1], 2000.5);
  EXPECT_TRUE(d.class_names("y").empty());
  EXPECT_EQ(d.target_forms().at("price"), "number, $#");
  EXPECT_EQ(csv(few, o).class_names("y").size(), 3u);  // as few whole numbers are classes
  o.classes.emplace();                                 // a run that learnt numbers
  EXPECT_EQ(csv(few, o).gather_all("y").to_doubles()[2], 2);
  o.target_forms["price"] = {"$#", false};
  EXPECT_EQ(csv("a,price\n1,$7\n1,8\n", o).gather_all("y").to_doubles(), (Doubles{7, 8}));
  EXPECT_EQ(failure("a,price\n1,7 kg\n", o).code(), "OT2124");
}

TEST_F(CsvTest, TargetOfNoOtherColumnsName) {
  CsvOptions o;
  o.columns = {{}, {}};
  o.columns[0].name = "x", o.columns[1].name = "y";
  o.features = {"x", "y"};
  o.targets = {"kind"};
  const Dataset one = csv("x,y,kind\n1,2,3\n4,5,6\n", o);
  EXPECT_EQ(one.target_column(), "kind");
  EXPECT_EQ(one.gather_all("y").to_doubles(), (Doubles{2, 5}));
  EXPECT_EQ(one.gather_all("kind").to_doubles(), (Doubles{3, 6}));
  o.targets = {"kind", "y_all"};
  const Dataset two = csv("x,y,kind,y_all\n1,2,3,7\n4,5,6,8\n", o);
  EXPECT_EQ(two.target_column(), "y_all_all");
  EXPECT_EQ(two.gather_all("y_all").to_doubles(), (Doubles{7, 8}));
}

TEST_F(CsvTest, DatesAreNoClasses) {
  const Dataset d = csv("when,v\n2020-01-02,3\n2020-01-03,4\n2020-01-04,5\n", [] {
    CsvOptions o;
    o.columns = {{}};
    o.columns[0].name = "when";
    o.columns[0].kind = CsvColumn::Kind::kDate;
    return o;
  }());
  EXPECT_EQ(d.targets(), (Strings{"v"}));
}

TEST_F(CsvTest, FilesPlainAndGzip) {
  std::string text = "a,b,c\n";
  for (int i = 0; i < 50; ++i) text += std::to_string(i) + ",1.5," + std::to_string(i % 2) + "\n";
  put("d.csv", text);
  put("d.csv.gz", gzip_bytes(text));
  EXPECT_EQ(open_dataset(at("d.csv")).rows(), 50);
  EXPECT_EQ(open_dataset(at("d.csv.gz")).rows(), 50);
  spoil("s.csv", text, false);
  spoil("s.csv.gz", gzip_bytes(text));
  put("bomb.csv.gz", gzip_bytes(std::string(100 << 20, '1')));
  EXPECT_EQ(open_code("bomb.csv.gz"), "OT1401");  // the limit of this test is 64 MiB
}

}  // namespace
}  // namespace onnxtrain
