#include "core/tensor/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "tests/core/tensor/half_values.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SafetensorsTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name = "model.safetensors") {
    return JoinPath(folder_, name);
  }
  void Put(const std::string& content, const std::string& name = "model.safetensors") {
    ::unlink(Path(name).c_str());  // truncating would wait for the disk
    ASSERT_TRUE(std::ofstream(Path(name)) << content);
  }
  // Opens the file with these bytes.
  absl::Status Status(const std::string& content) {
    Put(content);
    return SafetensorsReader::Open(Path()).status();
  }

  const TestFolder own_;
  const std::string folder_ = own_.path();
};

std::string U64(uint64_t n) { return std::string(reinterpret_cast<const char*>(&n), 8); }
std::string File(const std::string& json, const std::string& data = "") {
  return U64(json.size()) + json + data;
}
std::string Floats(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4);
}

TEST_F(SafetensorsTest, RefusesHostileFiles) {
  const std::string d8(8, 'x'), d16(16, 'x');
  const auto t = [](const std::string& name, const std::string& dtype, const std::string& shape,
                     const std::string& offsets) {
    return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":", shape,
        ",\"data_offsets\":", offsets, "}");
  };
  const auto one = [&](const std::string& dtype, const std::string& shape,
                       const std::string& offsets) {
    return absl::StrCat("{", t("a", dtype, shape, offsets), "}");
  };
  std::string many = "{";
  for (int i = 0; i <= 10000; ++i)
    absl::StrAppend(&many, i ? "," : "", t(std::to_string(i), "F32", "[0]", "[0,0]"));
  many += "}";
  const struct {
    const char* name;
    std::string file;
    const char* message;
  } cases[] = {
      {"empty", "", "0 bytes"},
      {"seven bytes", "1234567", "7 bytes"},
      {"length 2^63", U64(1ull << 63) + "{}", "header of 9223372036854775808 bytes"},
      {"length 2^64-1", U64(~0ull) + "{}", "header of 18446744073709551615 bytes"},
      {"length > file", U64(100) + "{}", "header of 100 bytes, the file has 10"},
      {"length 0", U64(0), "does not start"},
      {"length > 100 MB", U64(100'000'001) + "{}", "at most 100000000"},
      {"bad UTF-8", File("{\"\xFF\":1}"), "not valid JSON"},
      {"deep arrays",
          File("{\"a\":{\"x\":" + std::string(200000, '[') + std::string(200000, ']') + "}}"),
          "nested deeper than 64"},
      {"deep objects", File([] {
         std::string s = "{\"a\":{\"x\":";
         for (int i = 0; i < 200000; ++i) s += "{\"a\":";
         return s;
       }()),
          "nested deeper than 64"},
      {"overlap",
          File("{" + t("a", "F32", "[2]", "[0,8]") + "," + t("b", "F32", "[2]", "[4,12]") + "}",
              d16),
          "overlaps"},
      {"hole",
          File("{" + t("a", "F32", "[1]", "[0,4]") + "," + t("b", "F32", "[2]", "[8,16]") + "}",
              d16),
          "hole"},
      {"hole in front", File(one("F32", "[2]", "[8,16]"), d16), "hole"},
      {"trailing bytes", File(one("F32", "[2]", "[0,8]"), d16), "8 bytes at the end"},
      {"truncated data", File(one("F32", "[4]", "[0,16]"), d8), "the file has 8 bytes"},
      {"product overflow", File(one("F32", "[4294967296,4294967296]", "[0,0]")), "too large"},
      {"product wraps to 16 bytes", File(one("F32", "[2147483648,2147483648,4,4]", "[0,16]"), d16),
          "overflows"},
      {"sum of offsets wraps", File(one("F32", "[4]", "[18446744073709551608,8]"), d16),
          "data_offsets"},
      {"negative dimension", File(one("F32", "[-1]", "[0,8]"), d8), "negative"},
      {"fractional dimension", File(one("F32", "[2.0]", "[0,8]"), d8), "whole number"},
      {"dimension beyond 64 bits", File(one("F32", "[99999999999999999999999]", "[0,8]"), d8),
          "whole number"},
      {"end < begin", File(one("F32", "[2]", "[8,0]"), d8), "data_offsets"},
      {"size mismatch", File(one("F32", "[3]", "[0,8]"), d8), "expected 12 for F32[3]"},
      {"unknown dtype", File(one("F31", "[2]", "[0,8]"), d8), "unknown dtype F31"},
      {"empty tensor elsewhere",
          File("{" + t("a", "F32", "[2]", "[0,8]") + "," + t("b", "F32", "[0]", "[4,4]") + "}", d8),
          "overlaps"},
      {"number in metadata", File("{\"__metadata__\":{\"a\":1}}"), "expected a string"},
      {"array in metadata", File("{\"__metadata__\":{\"a\":[]}}"), "expected a string"},
      {"metadata twice", File("{\"__metadata__\":{},\"__metadata__\":{}}"), "twice"},
      {"name twice",
          File("{" + t("a", "F32", "[1]", "[0,4]") + "," + t("a", "F32", "[1]", "[4,8]") + "}", d8),
          "twice"},
      {"dtype twice",
          File("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
              d8),
          "twice"},
      {"leading blank", File(" " + one("F32", "[2]", "[0,8]"), d8), "does not start"},
      {"byte order mark", File("\xEF\xBB\xBF" + one("F32", "[2]", "[0,8]"), d8), "does not start"},
      {"zero times 2^62", File(one("F32", "[0,4611686018427387904]", "[0,0]")), "too large"},
      {"empty name", File("{" + t("", "F32", "[2]", "[0,8]") + "}", d8), "empty name"},
      {"long name", File("{" + t(std::string(1025, 'n'), "F32", "[2]", "[0,8]") + "}", d8),
          "at most 1024"},
      {"rank 9", File(one("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), d8), "too many numbers"},
      {"three offsets", File(one("F32", "[2]", "[0,8,8]"), d8), "too many numbers"},
      {"one offset", File(one("F32", "[2]", "[0]"), d8), "two numbers"},
      {"no dtype", File("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", d8), "no dtype"},
      {"10001 tensors", File(many), "more than 10000"},
      {"second value after the header", File("{}{}"), "not valid JSON"},
      {"zero byte hides the rest", File(std::string("{}\0garbage", 10)), "zero byte"},
      {"number for a tensor", File("{\"a\":5}"), "expected an object"},
      {"string for a shape", File("{\"a\":{\"dtype\":\"F32\",\"shape\":\"2\"}}"),
          "expected an array"},
      {"nested shape", File(one("F32", "[[2]]", "[0,8]"), d8), "whole number"},
      {"cut in the middle", File("{\"a\":{\"dtype\":\"F32\""), "not valid JSON"},
      {"not an object", File("[1]"), "does not start"},
  };
  for (const auto& c : cases) {
    const absl::Status status = Status(c.file);
    EXPECT_EQ(ExitOf(status), Exit::kData) << c.name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message)) << c.name;
    EXPECT_LT(status.message().size(), 500) << c.name;
  }
}

TEST_F(SafetensorsTest, AcceptsWhatIsOnlyUnusual) {
  const std::string json =
      R"({"__metadata__":{"x":"y"},"z":{"dtype":"F32","shape":[0],"data_offsets":[8,8],"future":{"deep":[1,{"a":null}],"f":1.5}},"../\u0000\u001b[1m":{"shape":[],)"
      R"("data_offsets":[0,4],"dtype":"F32"},"b":{"dtype":"U8","shape":[2,2],"data_offsets":[4,8]}})"
      "   ";
  Put(File(json, Floats({1.5f, 0})));
  auto reader = SafetensorsReader::Open(Path());
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->metadata().at("x"), "y");
  ASSERT_EQ(reader->tensors().size(), 3);
  float value = 0;
  EXPECT_TRUE(
      reader->ReadF32(absl::string_view("../\0\x1b[1m", 8), absl::MakeSpan(&value, 1)).ok());
  EXPECT_EQ(value, 1.5f);
  EXPECT_TRUE(reader->ReadF32("z", {}).ok());
  EXPECT_THAT(reader->Find("b")->shape, ElementsAre(2, 2));
  EXPECT_EQ(reader->Find("nothing"), nullptr);
}

TEST_F(SafetensorsTest, EveryTruncationAndNoByteFlipCrashes) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const auto bits = SixteenBits(values, FileType::kBf16);
  ASSERT_TRUE(WriteSafetensors(Path(), {{"weight", {2, 3}, FileType::kF32, values.data()},
                                           {"bias", {3}, FileType::kBf16, bits.data()}})
                  .ok());
  const std::string good = *ReadFile(Path(), 1 << 20);
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(Status(good.substr(0, n)).ok()) << n;
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] ^= 1 << bit;
      Put(bad);
      const auto reader = SafetensorsReader::Open(Path());
      if (!reader.ok()) continue;
      float out[6];
      for (const TensorInfo& t : reader->tensors())
        (void)reader->ReadF32(t.name, absl::MakeSpan(out, t.elements()));
    }
  }
}

TEST_F(SafetensorsTest, WritesWhatItReads) {
  const std::vector<float> a = {1, -2.5f, 3e-20f, 0, 1e30f, -0.0f}, b = {0.1f, 65504, 1.0f / 3};
  const auto b16 = SixteenBits(b, FileType::kBf16), f16 = SixteenBits(b, FileType::kF16);
  const std::vector<int64_t> ids = {-1, int64_t{1} << 40}, near = {INT32_MIN, INT32_MAX};
  const std::vector<int32_t> small = {7, -7};
  ASSERT_TRUE(WriteSafetensors(Path(),
      {{"b16", {3}, FileType::kBf16, b16.data()}, {"a", {2, 3}, FileType::kF32, a.data()},
          {"h", {3}, FileType::kF16, f16.data()}, {"ids", {2}, FileType::kI64, ids.data()},
          {"near", {2}, FileType::kI64, near.data()}, {"i32", {2}, FileType::kI32, small.data()}})
                  .ok());
  const std::string bytes = *ReadFile(Path(), 1 << 20);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0);
  auto reader = SafetensorsReader::Open(Path());
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->metadata().at("format"), "pt");
  for (const TensorInfo& t : reader->tensors()) EXPECT_EQ(t.offset % SizeOf(t.type), 0) << t.name;
  std::vector<float> out(6), three(3);
  ASSERT_TRUE(reader->ReadF32("a", absl::MakeSpan(out)).ok());
  EXPECT_EQ(std::memcmp(out.data(), a.data(), 24), 0);
  ASSERT_TRUE(reader->ReadF32("b16", absl::MakeSpan(three)).ok());
  EXPECT_THAT(three, ElementsAre(0.10009765625f, 65536.0f, 0.333984375f));
  ASSERT_TRUE(reader->ReadF32("h", absl::MakeSpan(three)).ok());
  EXPECT_THAT(three, ElementsAre(0.0999755859375f, 65504.0f, 0.333251953125f));
  std::vector<int32_t> i32(2);
  ASSERT_TRUE(reader->ReadI32("near", absl::MakeSpan(i32)).ok());
  EXPECT_THAT(i32, ElementsAre(INT32_MIN, INT32_MAX));
  ASSERT_TRUE(reader->ReadI32("i32", absl::MakeSpan(i32)).ok());
  EXPECT_EQ(i32, small);
  EXPECT_THAT(
      std::string(reader->ReadI32("ids", absl::MakeSpan(i32)).message()), HasSubstr("32 bits"));
  EXPECT_THAT(std::string(reader->ReadF32("ids", absl::MakeSpan(out.data(), 2)).message()),
      HasSubstr("type I64"));
  EXPECT_THAT(std::string(reader->ReadF32("a", absl::MakeSpan(three)).message()),
      HasSubstr("shape [2, 3]: expected 3 elements"));
  EXPECT_THAT(
      std::string(reader->ReadF32("c", absl::MakeSpan(three)).message()), HasSubstr("no tensor c"));
}

TEST_F(SafetensorsTest, ReadsLongTensorsOfEveryFloatType) {
  const int64_t n = (1 << 18) + 77;
  std::vector<float> a(n), out(n);
  for (int64_t i = 0; i < n; ++i) a[i] = static_cast<float>(i % 251) - 100;  // exact in all types
  std::string f64(n * 8, '\0');
  for (int64_t i = 0; i < n; ++i) {
    const double x = a[i];
    std::memcpy(&f64[i * 8], &x, 8);
  }
  Put(File("{\"a\":{\"dtype\":\"F64\",\"shape\":[" + std::to_string(n) + "],\"data_offsets\":[0," +
               std::to_string(n * 8) + "]}}",
      f64));
  ASSERT_TRUE(SafetensorsReader::Open(Path())->ReadF32("a", absl::MakeSpan(out)).ok());
  EXPECT_EQ(out, a);
  for (const FileType type : {FileType::kF32, FileType::kF16, FileType::kBf16}) {
    const std::string path = Path(std::string(NameOf(type)));
    const auto bits = SixteenBits(a, type);
    const void* data = type == FileType::kF32 ? static_cast<const void*>(a.data()) : bits.data();
    ASSERT_TRUE(WriteSafetensors(path, {{"a", {n}, type, data}}).ok());
    std::fill(out.begin(), out.end(), 0.0f);
    ASSERT_TRUE(SafetensorsReader::Open(path)->ReadF32("a", absl::MakeSpan(out)).ok());
    EXPECT_EQ(out, a) << NameOf(type);
  }
}

TEST_F(SafetensorsTest, RefusesValuesThatAreNotFinite) {
  const std::vector<float> bad = {1, 2, NAN};
  const absl::Status written = WriteSafetensors(Path(), {{"a", {3}, FileType::kF32, bad.data()}});
  EXPECT_THAT(std::string(written.message()), HasSubstr("tensor a: element 2 is NaN"));
  EXPECT_FALSE(PathExists(Path()));
  Put(File(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", Floats(bad)));
  std::vector<float> out(3);
  const auto reader = SafetensorsReader::Open(Path());
  const absl::Status status = reader->ReadF32("a", absl::MakeSpan(out));
  EXPECT_EQ(ExitOf(status), Exit::kData);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensor a: element 2 is NaN"));
  const double large = 1e300;
  Put(File(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})",
      std::string(reinterpret_cast<const char*>(&large), 8)));
  EXPECT_THAT(
      std::string(
          SafetensorsReader::Open(Path())->ReadF32("a", absl::MakeSpan(out.data(), 1)).message()),
      HasSubstr("too large"));
}

TEST_F(SafetensorsTest, DoesNotOverwrite) {
  const float x = 1, y = 2;
  ASSERT_TRUE(WriteSafetensors(Path(), {{"a", {1}, FileType::kF32, &x}}).ok());
  EXPECT_EQ(
      ExitOf(WriteSafetensors(Path(), {{"a", {1}, FileType::kF32, &y}})), Exit::kCannotCreate);
  EXPECT_EQ(ExitOf(SafetensorsStream::Create(Path()).status()), Exit::kCannotCreate);
  ASSERT_TRUE(ReplaceSafetensors(Path(), {{"a", {1}, FileType::kF32, &y}}).ok());
  float out = 0;
  ASSERT_TRUE(SafetensorsReader::Open(Path())->ReadF32("a", absl::MakeSpan(&out, 1)).ok());
  EXPECT_EQ(out, 2);
  EXPECT_EQ(ListDirectory(folder_)->size(), 1);
  EXPECT_FALSE(WriteSafetensors(
      Path("twice"), {{"a", {1}, FileType::kF32, &x}, {"a", {1}, FileType::kF32, &y}})
                   .ok());
}

TEST_F(SafetensorsTest, StreamsTensorsAndRows) {
  auto stream = SafetensorsStream::Create(Path());
  ASSERT_TRUE(stream.ok()) << stream.status();
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(stream->Add("rows", {1, 2}, absl::MakeSpan(rows.data(), 2)).ok());
  ASSERT_TRUE(stream->Add("rows", {2, 2}, absl::MakeSpan(rows.data() + 2, 4)).ok());
  ASSERT_TRUE(stream->Add("other", {2}, absl::MakeSpan(rows.data(), 2)).ok());
  EXPECT_EQ(ExitOf(stream->Add("rows", {2}, absl::MakeSpan(rows.data(), 2))), Exit::kData);
  EXPECT_TRUE(ListDirectory(folder_)->empty());  // nothing before the end
  ASSERT_TRUE(stream->Finish().ok());
  EXPECT_EQ(ListDirectory(folder_)->size(), 1);
  const auto reader = SafetensorsReader::Open(Path());
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT(reader->Find("rows")->shape, ElementsAre(3, 2));
  std::vector<float> out(6);
  ASSERT_TRUE(reader->ReadF32("rows", absl::MakeSpan(out)).ok());
  EXPECT_EQ(out, rows);
}

TEST_F(SafetensorsTest, ReadsShards) {
  const float x = 1, y = 2;
  ASSERT_TRUE(WriteSafetensors(Path("s1"), {{"a", {1}, FileType::kF32, &x}}).ok());
  ASSERT_TRUE(WriteSafetensors(Path("s2"), {{"b", {1}, FileType::kF32, &y}}).ok());
  const std::string index = "model.safetensors.index.json";
  Put(R"({"metadata":{"total_size":8},"weight_map":{"a":"s1","b":"s2"}})", index);
  const auto folder = SafetensorsReader::OpenFolder(folder_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->tensors().size(), 2);
  float out = 0;
  ASSERT_TRUE(folder->ReadF32("b", absl::MakeSpan(&out, 1)).ok());
  EXPECT_EQ(out, 2);
  const struct {
    const char *json, *message;
    Exit exit;
  } cases[] = {
      {R"({"weight_map":{"a":"s1","b":"../s2"}})", "plain name", Exit::kData},
      {R"({"weight_map":{"a":"s1","b":"/etc/passwd"}})", "plain name", Exit::kData},
      {R"({"weight_map":{"a":"s1","b":""}})", "plain name", Exit::kData},
      {R"({"weight_map":{"a":"s1","b":"s3"}})", "s3", Exit::kNoInput},
      {R"({"weight_map":{"a":"s1","b":"s2","c":"s2"}})", "tensor c is missing in s2", Exit::kData},
      {R"({"weight_map":{"b":"s2","c":"s1"}})", "s1 has tensor a", Exit::kData},
      {R"({"weight_map":{"a":"s2","b":"s2"}})", "missing in s2", Exit::kData},
      {R"({"weight_map":{"a":"s1","a":"s2"}})", "given twice", Exit::kData},
      {R"({"weight_map":[]})", "object", Exit::kData},
      {R"({"weight_map":{"a":1}})", "file name", Exit::kData},
      {"{\n\"weight_map\"", ":2: not valid JSON", Exit::kData},
      {"[]", "expected a JSON object", Exit::kData},
  };
  for (const auto& c : cases) {
    Put(c.json, index);
    const absl::Status status = SafetensorsReader::OpenFolder(folder_).status();
    EXPECT_EQ(ExitOf(status), c.exit) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
  ASSERT_TRUE(
      WriteSafetensors(Path("s3"), {{"a", {1}, FileType::kF32, &y}, {"c", {1}, FileType::kF32, &y}})
          .ok());
  Put(R"({"weight_map":{"a":"s1","b":"s2","c":"s3"}})", index);
  EXPECT_THAT(std::string(SafetensorsReader::OpenFolder(folder_).status().message()),
      HasSubstr("tensor a is in s3"));
}

TEST_F(SafetensorsTest, NamesWhatIsMissing) {
  EXPECT_EQ(ExitOf(SafetensorsReader::OpenFolder(folder_).status()), Exit::kNoInput);
  Put("x", "pytorch_model.bin");
  EXPECT_THAT(std::string(SafetensorsReader::OpenFolder(folder_).status().message()),
      HasSubstr("never read"));
  EXPECT_EQ(ExitOf(SafetensorsReader::Open(Path("none")).status()), Exit::kNoInput);
  EXPECT_EQ(ExitOf(SafetensorsReader::Open(folder_).status()), Exit::kNoInput);
}

TEST(HalfTest, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {  // there and back, all of them
    const float x = HalfToFloat(bits);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(x))));
      EXPECT_TRUE(std::isnan(Bf16ToFloat(FloatToBf16(x))));
    } else {
      EXPECT_EQ(FloatToHalf(x), bits);
    }
    const float y = Bf16ToFloat({static_cast<uint16_t>(bits)});
    EXPECT_TRUE(std::isnan(y) || FloatToBf16(y).bits == bits);
  }
  for (uint16_t bits = 0; bits < 0x7BFF;
       ++bits) {  // the middle between neighbours goes to the even one, beside it to the nearer one
    const float low = HalfToFloat(bits), high = HalfToFloat(bits + 1), middle = (low + high) / 2;
    EXPECT_EQ(FloatToHalf(middle), bits + (bits & 1));
    EXPECT_EQ(FloatToHalf(std::nextafterf(middle, 0)), bits);
    EXPECT_EQ(FloatToHalf(-std::nextafterf(middle, 1e9f)), 0x8000 | (bits + 1));
  }
  EXPECT_EQ(HalfToFloat(0x3C01), 1.0009765625f);
  EXPECT_EQ(FloatToHalf(65519.99f), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520), 0x7C00);
  EXPECT_EQ(FloatToHalf(-INFINITY), 0xFC00);
  EXPECT_EQ(FloatToBf16(1.00390625f).bits, 0x3F80);  // 1 + 2^-8: a tie
  EXPECT_EQ(FloatToBf16(1.01171875f).bits, 0x3F82);  // 1 + 3 * 2^-8: a tie
  EXPECT_EQ(FloatToBf16(std::numeric_limits<float>::max()).bits, 0x7F80);
}

}  // namespace
}  // namespace cloze
