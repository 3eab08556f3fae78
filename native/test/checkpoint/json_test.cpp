#include "core/checkpoint/json.h"

#include <cmath>
#include <filesystem>

#include "core/runtime/error.h"
#include "test/checkpoint_files.h"
#include "test/test.h"

using namespace carillon;

namespace {

Json parse(const std::string& text) { return Json::parse(text, "file.json"); }

}  // namespace

TEST("json: reads every type") {
  const Json json = parse(R"( {"i": -12, "d": 2.5e-1, "whole": 3, "s": "a\"b\\\/\n\u00e9\ud83c\udfb9", "t": true,
                              "f": false, "n": null, "a": [1, [2], {}], "e": []} )");
  EXPECT_EQ(json.get_int("i"), -12);
  EXPECT_EQ(json.get_double("d"), 0.25);
  EXPECT_EQ(json.get_double("whole"), 3.0);
  EXPECT_EQ(json.at("s").as_string(), std::string("a\"b\\/\n\xc3\xa9\xf0\x9f\x8e\xb9"));
  EXPECT(json.get_bool("t", false) && !json.get_bool("f", true));
  EXPECT(json.at("n").is_null() && !json.has("n") && !json.has("absent"));
  EXPECT_EQ(json.at("a").as_array().size(), size_t{3});
  EXPECT_EQ(json.at("a").as_array()[1].as_array()[0].as_int(), 2);
  EXPECT(json.get_ints("e").empty());
}

TEST("json: reads 64-bit integers exactly and larger ones as floating point") {
  EXPECT_EQ(parse("9223372036854775807").as_int(), INT64_MAX);
  EXPECT_EQ(parse("-9223372036854775808").as_int(), INT64_MIN);
  EXPECT_EQ(parse("9223372036854775808").as_double(), std::ldexp(1.0, 63));
}

TEST("json: uses fallbacks for absent or null members only, not for wrong types") {
  const Json json = parse(R"({"n": null, "s": "x"})");
  EXPECT_EQ(json.get_int("absent", 7), 7);
  EXPECT_EQ(json.get_int("n", 7), 7);
  EXPECT_THROWS(json.get_int("s", 7), "file.json: s is a string, expected an integer");
}

TEST("json: errors name the file and the path of the value") {
  const Json json = parse(R"({"outer": {"list": [1, "two"]}, "x": 1.5})");
  EXPECT_THROWS(json.at("outer").get_ints("list"), "file.json: outer.list[1] is a string, expected an integer");
  EXPECT_THROWS(json.at("outer").at("missing"), "file.json: outer.missing is missing");
  EXPECT_THROWS(json.get_int("x"), "x is a fraction, expected an integer");
  EXPECT_THROWS(parse("[]").at("key"), "the document is an array, expected an object");
}

TEST("json: reads a file with a byte order mark") {
  const std::string path = test::fixture_directory() + "/marked.json";
  test::write_file(path, "\xEF\xBB\xBF{\"r\": 8}");
  EXPECT_EQ(Json::read_file(path).get_int("r"), 8);
}

TEST("json: rejects what RFC 8259 forbids") {
  for (const char* text : {"",
                           "{",
                           "[1,]",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{'a':1}",
                           "01",
                           "1.",
                           ".5",
                           "1e",
                           "+1",
                           "-",
                           "NaN",
                           "tru",
                           "nulls",
                           "\"a",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\t\"",
                           "1 2",
                           "[1 2]",
                           "{\"a\" 1}",
                           "// comment\n1",
                           "{\"a\":1,\"a\":2}",
                           "1e999"}) {
    EXPECT_THROWS(parse(text), "file.json: not JSON at byte");
  }
  EXPECT_THROWS(parse(std::string(100000, '[')), "nested too deeply");
}

TEST("json: rejects text that is not UTF-8, naming the byte") {
  for (const char* text : {"\"\x80\"", "\"\xc3\"", "\"\xe2\x82\"", "\"\xff\"",          // incomplete, unused
                           "\"\xc0\xaf\"", "\"\xe0\x9f\xbf\"", "\"\xf0\x8f\xbf\xbf\"",  // overlong forms
                           "\"\xed\xa0\x80\"",                                          // a surrogate
                           "\"\xf4\x90\x80\x80\"", "\"\xf5\x80\x80\x80\""}) {           // above U+10FFFF
    EXPECT_THROWS(parse(text), "file.json: not JSON at byte 1: not UTF-8");
  }
  EXPECT_THROWS(parse("{\"\xc3\xa9\xe9\": 1}"), "not JSON at byte 4: not UTF-8");
  EXPECT_THROWS(parse("1 \xe9"), "not JSON at byte 2: not UTF-8");
  const std::string valid = "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf";
  EXPECT_EQ(parse("\"" + valid + "\"").as_string(), valid);
}

TEST("json: reports a missing file as a bad checkpoint") {
  try {
    Json::read_file(test::fixture_directory() + "/config.json");
    EXPECT(false);
  } catch (const Error& error) {
    EXPECT(error.code() == ErrorCode::kBadCheckpoint);
    EXPECT(std::string(error.what()).find("config.json: No such file") != std::string::npos);
  }
}

TEST("json: rejects a file that is too large without reading it") {
  const std::string path = test::fixture_directory() + "/sparse.json";
  test::write_file(path, "{}");
  std::filesystem::resize_file(path, uintmax_t{1} << 40);
  EXPECT_THROWS(Json::read_file(path), "has 1099511627776 bytes, more than");
}

TEST("json text: written values read back") {
  const std::string text =
      json_object({{"b", json_array({json_number(1e-4), json_number(-3), json_bool(false), "null"})},
                   {"a\n", json_string("\"\x01é")}},
                  true);
  const Json read = Json::parse(text, "text");
  EXPECT_EQ(read.at("a\n").as_string(), std::string("\"\x01é"));
  EXPECT_EQ(read.at("b").as_array()[0].as_double(), 1e-4);
  EXPECT_EQ(read.at("b").as_array()[1].as_int(), int64_t{-3});
  EXPECT_EQ(json_number(1.0 / 0.0), std::string("null"));
  EXPECT_EQ(json_object({}), std::string("{}"));
  EXPECT_EQ(json_object({{"b", "1"}, {"a", "2"}}, true), std::string("{\n  \"a\": 2,\n  \"b\": 1\n}"));
}
