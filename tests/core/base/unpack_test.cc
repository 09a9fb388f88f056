// Packed files: what zlib, liblzma and libzstd write, whole, cut, damaged and followed by others.
#include "core/base/unpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <functional>

#include "core/base/file.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::HasSubstr;

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = out.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Xz(const std::string& text) {
  std::string out(lzma_stream_buffer_bound(text.size()), '\0');
  size_t size = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, nullptr,
                reinterpret_cast<const uint8_t*>(text.data()), text.size(),
                reinterpret_cast<uint8_t*>(out.data()), &size, out.size()),
      LZMA_OK);
  out.resize(size);
  return out;
}

std::string Zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

struct Packer {
  const char* name;
  std::function<std::string(const std::string&)> pack;
};

class UnpackTest : public testing::TestWithParam<Packer> {
 protected:
  std::string Write(const std::string& content) {
    const std::string path = JoinPath(own_.path(), "f" + std::to_string(++files_));
    EXPECT_TRUE(WriteNewFile(path, content).ok());
    return path;
  }
  // The content of a file, or the message.
  std::string Read(const std::string& content) {
    const auto read = ReadInput(Write(content), 1 << 30);
    if (read.ok()) return *read;
    EXPECT_EQ(ExitOf(read.status()), Exit::kData);
    return std::string(read.status().message());
  }
  std::string Pack(const std::string& text) { return GetParam().pack(text); }

  const TestFolder own_;
  int files_ = 0;
};

TEST_P(UnpackTest, WholeFiles) {
  std::string noise;
  for (uint32_t i = 0, x = 1; i < 2'000'000; ++i)
    noise += 'a' + ((x = x * 1664525 + 1013904223) >> 28);
  for (const std::string& text : {std::string(), std::string("x\n"), noise})
    EXPECT_TRUE(Read(Pack(text)) == text) << text.size();
  EXPECT_EQ(Read(Pack("one\n") + Pack("") + Pack("two\n")), "one\ntwo\n") << "several archives";
}

TEST_P(UnpackTest, LinesOfAPackedFile) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += std::to_string(i) + "\n";
  const std::string packed = Pack(text);
  LineReader reader = *LineReader::Open(Write(packed));
  std::string line;
  for (int i = 0; i < 100000; ++i) {
    ASSERT_TRUE(*reader.Ready());
    ASSERT_TRUE(*reader.Next(&line));
    ASSERT_EQ(line, std::to_string(i));
  }
  EXPECT_FALSE(*reader.Next(&line));
  EXPECT_EQ(reader.position(), text.size());
  EXPECT_EQ(reader.stored_position(), packed.size());
}

TEST_P(UnpackTest, EachCutIsAnErrorWithTheName) {
  const std::string packed = Pack("some words and some other words\n");
  for (size_t n = 6; n < packed.size(); ++n) {
    EXPECT_THAT(Read(packed.substr(0, n)), HasSubstr("truncated after")) << n;
    EXPECT_THAT(
        Read(packed.substr(0, n)), HasSubstr(": " + std::string(GetParam().name) + " data"));
  }
}

TEST_P(UnpackTest, DamageAndOtherDataBehindAreErrors) {
  std::string packed = Pack("some words and some other words\n");
  EXPECT_THAT(Read(packed + "not an archive"), HasSubstr("other data follow the end"));
  packed[packed.size() - 7] ^= 1;
  EXPECT_THAT(Read(packed), HasSubstr(std::string(GetParam().name) + " -t"));
}

TEST_P(UnpackTest, ABombComesInSmallParts) {
  const std::string packed = Pack(std::string(100 << 20, 'x'));
  ASSERT_LT(packed.size(), 1 << 20);
  InputFile file = *InputFile::Open(Write(packed));
  int64_t bytes = 0;
  std::string part;
  for (bool more = true; more; bytes += part.size()) {
    part.clear();
    more = *file.Read(&part);
    ASSERT_LE(part.size(), 1 << 18);
  }
  EXPECT_EQ(bytes, 100 << 20);
  EXPECT_EQ(ExitOf(ReadInput(Write(packed), 1 << 20).status()), Exit::kLimit);
}

INSTANTIATE_TEST_SUITE_P(Packers, UnpackTest,
    testing::Values(Packer{"gzip", Gzip}, Packer{"xz", Xz}, Packer{"zstd", Zstd}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Unpack, ArchivesThatNeedMuchMemoryAreRefused) {
  // A zstd frame with a window of 256 MB.
  std::string bytes = std::string("\x28\xB5\x2F\xFD", 4) + '\0' + char(18 << 3) + "\x01\0\0";
  auto zstd = Unpacker::For(bytes);
  std::string out;
  EXPECT_EQ(zstd->Unpack(bytes, 100, &out), -1);
  EXPECT_THAT(zstd->error(), HasSubstr("memory"));

  lzma_options_lzma options;
  ASSERT_FALSE(lzma_lzma_preset(&options, 0));
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  bytes.assign(1000, '\0');
  size_t size = 0;
  options.dict_size = 200 << 20;
  ASSERT_EQ(lzma_stream_buffer_encode(const_cast<lzma_filter*>(filters), LZMA_CHECK_CRC32, nullptr,
                reinterpret_cast<const uint8_t*>("x"), 1, reinterpret_cast<uint8_t*>(bytes.data()),
                &size, bytes.size()),
      LZMA_OK);
  auto xz = Unpacker::For(bytes);
  EXPECT_EQ(xz->Unpack(bytes, 100, &out), -1);
  EXPECT_THAT(xz->error(), HasSubstr("more than 128 MB"));
}

}  // namespace
}  // namespace cloze
