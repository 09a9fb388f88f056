#include "core/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/text.h"

namespace cloze {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Repeat(absl::string_view text, int64_t times) {
  std::string out;
  for (int64_t i = 0; i < times; ++i) out.append(text.data(), text.size());
  return out;
}

TEST(ParseJson, BuildsTheTree) {
  const auto json = ParseJson(
      "\xEF\xBB\xBF{\"a\": [1, -2, 2.5, {\"b\": [[], {}]}, null], \"c\": {\"d\": true}, "
      "\"e\": \"x\"}\n",
      "x.json");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->dump(), R"({"a":[1,-2,2.5,{"b":[[],{}]},null],"c":{"d":true},"e":"x"})");
  EXPECT_EQ(JsonMember(*json, "e"), "x");
  EXPECT_TRUE(JsonMember(*json, "f").is_null());
  EXPECT_TRUE(JsonMember(JsonMember(*json, "a"), "f").is_null());
}

TEST(ParseJson, RefusesWithPathAndLine) {
  const struct {
    std::string text, message;
  } kCases[] = {
      {"", "x.json:1: not valid JSON"},
      {"{\n\"a\": 1\n\"b\": 2}", "x.json:3: not valid JSON"},
      {"{} {}", "x.json:1: not valid JSON"},
      {"{\"a\": 1e999}", "x.json:1: a number is out of range"},
      {"{\"\xFF\": 1}", "x.json:1: not valid JSON"},
      {"[1]", "x.json: expected a JSON object"},
      {"7", "x.json: expected a JSON object"},
      {std::string("{}\0", 3), "x.json: contains a zero byte"},
      {"{\"a\": 1, \"b\": {\"a\": 2, \"a\": 3}}", "x.json: member \"a\" is given twice"},
      {"{\"a\": " + Repeat("[", 64), "x.json: nested deeper than 64 levels"},
      {Repeat("{\"a\":", 1'000'000), "x.json: nested deeper than 64 levels"},
  };
  for (const auto& c : kCases) {
    const absl::Status status = ParseJson(c.text, "x.json").status();
    EXPECT_EQ(status.message(), c.message);
    EXPECT_EQ(ExitOf(status), Exit::kData);
  }
}

TEST(ParseJson, BoundsDepthAndValues) {
  EXPECT_TRUE(ParseJson("{\"a\": " + Repeat("[", 63) + Repeat("]", 63) + "}", "x").ok());
  EXPECT_TRUE(ParseJson("{\"a\": [1, 2, 3]}", "x", 5).ok());
  EXPECT_EQ(ParseJson("{\"a\": [1, 2, 3]}", "x", 4).status().message(), "x: too many values");
}

TEST(ParseJson, ListsTheMembersOfOneObject) {
  const auto members = [](const std::string& text, const std::string& tree) {
    JsonList list = {{"a", "b"}, {}};
    const auto json = ParseJson(text, "x", 100, &list);
    EXPECT_TRUE(json.ok()) << json.status();
    EXPECT_EQ(json->dump(), tree);
    std::string all;
    for (const auto& [name, value] : list.members) absl::StrAppend(&all, name, value.dump(), " ");
    return all;
  };
  EXPECT_EQ(
      members(
          R"({"b": {"b": 1}, "a": {"a": {"b": 2}, "b": {"z": 3, "b": {"b": [4, {"a": 5}]}, "a": 6,
              "z": 7}, "c": {"b": 8}}, "c": 9})",
          R"({"a":{"a":{"b":2},"b":{},"c":{"b":8}},"b":{"b":1},"c":9})"),
      R"(z3 b{"b":[4,{"a":5}]} a6 z7 )");
  EXPECT_EQ(members(R"({"a": {"b": [{"b": 1}]}})", R"({"a":{"b":[{"b":1}]}})"), "");
  EXPECT_EQ(members(R"({"a": [{"b": {"b": 1}}]})", R"({"a":[{"b":{"b":1}}]})"), "");
  EXPECT_EQ(members(R"({"b": {"b": {"c": 1}}, "a": 2})", R"({"a":2,"b":{"b":{"c":1}}})"), "");
  JsonList list = {{"a"}, {}};
  EXPECT_EQ(ParseJson(R"({"a": {"b": 1, "c": 2}})", "x", 3, &list).status().message(),
      "x: too many values");
  EXPECT_EQ(ParseJson(R"({"a": {}, "a": {}})", "x", 9, &list).status().message(),
      "x: member \"a\" is given twice");
}

TEST(JsonFields, ReadsMembersAndKeepsTheFirstError) {
  const Json json = {{"i", 7}, {"n", 0.5}, {"s", "x"}, {"b", true}, {"null", nullptr}, {"neg", -1}};
  JsonFields fields(json, "x.json");
  int32_t i = 1;
  float n = 1;
  fields.Integer("i", true, 0, 7, &i);
  fields.Integer("missing", false, 0, 7, &i);
  fields.Integer("null", false, 0, 7, &i);
  fields.Number("n", 0, 1, &n);
  EXPECT_EQ(i, 7);
  EXPECT_EQ(n, 0.5f);
  EXPECT_EQ(fields.String("s"), "x");
  EXPECT_EQ(fields.String("null"), "");
  EXPECT_TRUE(fields.Bool("b", false));
  EXPECT_TRUE(fields.Bool("missing", true));
  EXPECT_TRUE(fields.status().ok()) << fields.status();

  const auto error = [&](auto read) {
    JsonFields wrong(json, "x.json");
    read(wrong);
    wrong.Fail("later", "ignored");
    EXPECT_EQ(ExitOf(wrong.status()), Exit::kData);
    EXPECT_EQ(i, 7);
    return std::string(wrong.status().message());
  };
  EXPECT_EQ(
      error([&](JsonFields& f) { f.Integer("null", true, 0, 7, &i); }), "x.json: null: missing");
  EXPECT_EQ(error([&](JsonFields& f) { f.Integer("i", true, 0, 6, &i); }),
      "x.json: i: expected a whole number from 0 to 6, found 7");
  EXPECT_EQ(error([&](JsonFields& f) { f.Integer("neg", true, 0, 6, &i); }),
      "x.json: neg: expected a whole number from 0 to 6, found -1");
  EXPECT_EQ(error([&](JsonFields& f) { f.Integer("n", true, 0, 6, &i); }),
      "x.json: n: expected a whole number from 0 to 6, found 0.5");
  EXPECT_EQ(error([&](JsonFields& f) { f.Number("s", 0, 6, &n); }),
      "x.json: s: expected a number from 0 to 6, found \"x\"");
  EXPECT_EQ(error([&](JsonFields& f) { f.String("i"); }), "x.json: i: expected a string");
  EXPECT_EQ(error([&](JsonFields& f) { f.Bool("i", true); }), "x.json: i: expected true or false");
}

TEST(JsonFields, NamesMembersThatNoTableHas) {
  const Json json = {{"a", 1}, {"_b", 2}, {"c", nullptr}, {"d", false}, {"e", ""},
      {"f", Json::array()}, {"g", Json::object()}, {"h", 0}};
  const auto error = [&](auto check) {
    JsonFields fields(json, "x.json");
    check(fields);
    return std::string(fields.status().message());
  };
  using Fields = JsonFields;
  EXPECT_EQ(error([](Fields& f) { f.AllowOnly({"a", "_b", "c", "d", "e", "f", "g", "h"}); }), "");
  EXPECT_EQ(error([](Fields& f) {
    f.AllowOnly({"a", "_b", "c", "e", "f", "g", "h"});
  }),
      "x.json: d: unknown member, false: expected only a, _b, c, e, f, g, h");
  EXPECT_EQ(error([](Fields& f) { f.AllowOnlyUnset({"a", "h"}); }), "");
  EXPECT_EQ(error([](Fields& f) { f.AllowOnlyUnset({"a"}); }),
      "x.json: h: unknown member, 0, which may change results (remove it if it has no meaning for "
      "this model)");
  EXPECT_EQ(error([](Fields& f) { f.AllowValues("a", {nullptr, 1}); }), "");
  EXPECT_EQ(error([](Fields& f) { f.AllowValues("missing", {1}); }), "");
  EXPECT_EQ(error([](Fields& f) {
    f.AllowValues("c", {true, 0.5});
  }),
      "x.json: c: is null, which is not supported: expected true or 0.5");
}

TEST(ParseJsonLine, KeepsWhatIsWanted) {
  const std::vector<std::string> names = {"text", "list", "number", "gone", "object", "deep"};
  std::vector<JsonValue> values;
  std::vector<std::string> found;
  const absl::Status status = ParseJsonLine(
      "{\"x\": {\"text\": 1, \"text\": [[[]]]}, \"x\": 2, \"text\": \"a\\u00e9\", \"list\": "
      "[\"b\", 1, "
      "true], \"number\": 1.50, \"object\": {\"text\": 1}, \"deep\": [\"a\", [1], \"b\"]}",
      names, &values, &found);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(found, ElementsAre("x", "x", "text", "list", "number", "object", "deep"));
  ASSERT_EQ(values.size(), names.size());
  EXPECT_EQ(values[0].kind, JsonValue::kString);
  EXPECT_EQ(values[0].text, "a\xC3\xA9");
  EXPECT_EQ(values[1].kind, JsonValue::kList);
  EXPECT_THAT(values[1].items, ElementsAre("b", "1", "true"));
  EXPECT_TRUE(values[1].IsListOf(
      1u << JsonValue::kString | 1u << JsonValue::kNumber | 1u << JsonValue::kBoolean));
  EXPECT_FALSE(values[1].IsListOf(1u << JsonValue::kString));
  EXPECT_EQ(values[2].kind, JsonValue::kNumber);
  EXPECT_EQ(values[2].text, "1.50");
  EXPECT_EQ(values[3].kind, JsonValue::kMissing);
  EXPECT_EQ(values[4].kind, JsonValue::kOther);
  EXPECT_EQ(values[5].kind, JsonValue::kOther);
}

TEST(ParseJsonLine, RefusesWhatParseJsonRefuses) {
  std::vector<JsonValue> values;
  const auto error = [&](const std::string& line) {
    const absl::Status status = ParseJsonLine(line, {"a"}, &values);
    EXPECT_EQ(ExitOf(status), Exit::kData);
    return std::string(status.message());
  };
  EXPECT_EQ(error("{\"a\": 1"), "not valid JSON at byte 8");
  EXPECT_EQ(error("{\"a\": 1e999}"), "a number is out of range at byte 11");
  EXPECT_EQ(error("{\"a\": 1, \"a\": 2}"), "member \"a\" is given twice");
  EXPECT_EQ(error(std::string("{}\0", 3)), "contains a zero byte");
  EXPECT_EQ(error("[1]"), "expected a JSON object");
  EXPECT_EQ(error("1"), "expected a JSON object");
  EXPECT_EQ(error("{\"x\": " + Repeat("[", 1'000'000)), "nested deeper than 64 levels");
  EXPECT_EQ(
      error("{\"a\": [0" + Repeat(",0", 1'000'000) + "]}"), "a list of more than 1000000 items");
  EXPECT_TRUE(ParseJsonLine("{\"x\": [0" + Repeat(",0", 1'000'000) + "]}", {"a"}, &values).ok());
}

TEST(JsonString, EscapesWhatMustBe) {
  EXPECT_EQ(JsonString("a\"b\\c\n\r\t\x01/"), "\"a\\\"b\\\\c\\n\\r\\t\\u0001/\"");
  EXPECT_EQ(JsonString(absl::string_view("\0", 1)), "\"\\u0000\"");
  EXPECT_EQ(JsonString("\xC3\xA9\xF0\x9F\x98\x80"), "\"\xC3\xA9\xF0\x9F\x98\x80\"");
  EXPECT_EQ(JsonString("\xE2\x80\xAE\x7F"), "\"\\u202e\\u007f\"");
}

TEST(JsonString, ReplacesEachInvalidSequence) {
  EXPECT_EQ(JsonString("a\xFFz\xE2\x82"), "\"a\xEF\xBF\xBDz\xEF\xBF\xBD\"");
  EXPECT_EQ(JsonString("\xC0\x80\xED\xA0\x80"),
      "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonString, ReadsBackAsTheSameText) {
  std::string text;
  for (uint32_t c = 1; c < 0x3000; ++c) {
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else {
      text += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
          static_cast<char>(0x80 | (c & 63))};
    }
  }
  EXPECT_EQ(Json::parse(JsonString(text)).get<std::string>(), text);
}

TEST(JsonNumber, IsShortAndExact) {
  EXPECT_EQ(JsonNumber(0.1f), "0.1");
  EXPECT_EQ(JsonNumber(0.1), "0.1");
  EXPECT_EQ(JsonNumber(1.0f / 3), "0.33333334");
  EXPECT_EQ(JsonNumber(1e-30f), "1e-30");
  EXPECT_EQ(JsonNumber(std::nanf("")), "null");
  EXPECT_EQ(JsonNumber(-std::numeric_limits<double>::infinity()), "null");
}

TEST(ToJsonLine, KeepsOrderAndEscapes) {
  const OrderedJson json = {{"b", 1}, {"a", {1.5, 1.0, Decimal(0.1f), nullptr, true, "\x7F\xFF"}},
      {"e", OrderedJson::object()}, {"l", OrderedJson::array()}, {"n", std::nan("")}, {"i", -3}};
  EXPECT_EQ(ToJsonLine(json),
      "{\"b\": 1, \"a\": [1.5, 1, 0.1, null, true, \"\\u007f\xEF\xBF\xBD\"], \"e\": {}, \"l\": [], "
      "\"n\": null, \"i\": -3}");
}

TEST(ToJsonText, IndentsAndSorts) {
  EXPECT_EQ(
      ToJsonText(Json{{"b", 1}, {"a", {1.0}}}), "{\n  \"a\": [\n    1.0\n  ],\n  \"b\": 1\n}\n");
  EXPECT_EQ(ToJsonText(OrderedJson{{"b", 1}, {"a", "\xFF"}}),
      "{\n  \"b\": 1,\n  \"a\": \"\xEF\xBF\xBD\"\n}\n");
}

}  // namespace
}  // namespace cloze
