#include "core/base/unpack.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <utility>

#include "absl/strings/match.h"

namespace cloze {
namespace {

constexpr uint64_t kMaxXzBytes = 128 << 20;
constexpr int kMaxZstdWindow = 27;  // 128 MB
constexpr char kNoMemory[] = "not enough memory";
constexpr absl::string_view kGzip = "\x1F\x8B", kXz = {"\xFD\x37zXZ\0", 6},
                            kZstd = "\x28\xB5\x2F\xFD";

// The members of zlib's and liblzma's streams have the same names.
template <typename Stream, typename Byte, typename Step>
auto RunStream(Stream* stream, absl::string_view* in, char** out, size_t* room, Step step) {
  stream->next_in = reinterpret_cast<Byte*>(const_cast<char*>(in->data()));
  stream->avail_in = in->size();
  stream->next_out = reinterpret_cast<unsigned char*>(*out);
  stream->avail_out = *room;
  const auto result = step();
  in->remove_prefix(in->size() - stream->avail_in);
  *out += *room - stream->avail_out;
  *room = stream->avail_out;
  return result;
}

// https://www.rfc-editor.org/rfc/rfc1952
class GzipUnpacker : public Unpacker {
 public:
  GzipUnpacker() : Unpacker("gzip") {}
  ~GzipUnpacker() override { inflateEnd(&stream_); }

 protected:
  const char* Run(Buffer* buffer, bool* end) override {
    const int result = RunStream<z_stream, Bytef>(&stream_, &buffer->in, &buffer->out,
        &buffer->room, [&] { return inflate(&stream_, Z_NO_FLUSH); });
    *end = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR) return kNoMemory;
    if (result == Z_OK || *end || result == Z_BUF_ERROR) return nullptr;
    return stream_.msg != nullptr ? stream_.msg : "unknown contents";
  }
  bool Reset() override {
    inflateEnd(&stream_);
    stream_ = {};
    return inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK;  // 16: gzip headers only
  }

 private:
  z_stream stream_ = {};
};

// https://tukaani.org/xz/xz-file-format.txt
class XzUnpacker : public Unpacker {
 public:
  XzUnpacker() : Unpacker("xz") {}
  ~XzUnpacker() override { lzma_end(&stream_); }

 protected:
  const char* Run(Buffer* buffer, bool* end) override {
    const lzma_ret result = RunStream<lzma_stream, const uint8_t>(&stream_, &buffer->in,
        &buffer->out, &buffer->room, [&] { return lzma_code(&stream_, LZMA_RUN); });
    *end = result == LZMA_STREAM_END;
    if (result == LZMA_OK || *end || result == LZMA_BUF_ERROR) return nullptr;
    return result == LZMA_MEM_ERROR        ? kNoMemory
           : result == LZMA_MEMLIMIT_ERROR ? "unpacking needs more than 128 MB of memory"
           : result == LZMA_FORMAT_ERROR   ? "incorrect header"
           : result == LZMA_OPTIONS_ERROR  ? "options of a newer format"
                                           : "incorrect data";
  }
  bool Reset() override { return lzma_stream_decoder(&stream_, kMaxXzBytes, 0) == LZMA_OK; }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

// https://www.rfc-editor.org/rfc/rfc8878
class ZstdUnpacker : public Unpacker {
 public:
  ZstdUnpacker() : Unpacker("zstd") {}
  ~ZstdUnpacker() override { ZSTD_freeDStream(stream_); }

 protected:
  const char* Run(Buffer* buffer, bool* end) override {
    ZSTD_inBuffer in = {buffer->in.data(), buffer->in.size(), 0};
    ZSTD_outBuffer out = {buffer->out, buffer->room, 0};
    const size_t result = ZSTD_decompressStream(stream_, &out, &in);
    buffer->in.remove_prefix(in.pos);
    buffer->out += out.pos;
    buffer->room -= out.pos;
    *end = result == 0;
    return ZSTD_isError(result) != 0 ? ZSTD_getErrorName(result) : nullptr;
  }
  bool Reset() override {
    if (stream_ == nullptr) stream_ = ZSTD_createDStream();
    return stream_ != nullptr && ZSTD_isError(ZSTD_initDStream(stream_)) == 0 &&
           ZSTD_isError(ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kMaxZstdWindow)) == 0;
  }

 private:
  ZSTD_DStream* stream_ = nullptr;
};

}  // namespace

std::unique_ptr<Unpacker> Unpacker::For(absl::string_view bytes) {
  if (absl::StartsWith(bytes, kGzip)) return std::make_unique<GzipUnpacker>();
  if (absl::StartsWith(bytes, kXz)) return std::make_unique<XzUnpacker>();
  if (absl::StartsWith(bytes, kZstd)) return std::make_unique<ZstdUnpacker>();
  return nullptr;
}

bool Unpacker::Undecided(absl::string_view bytes) {
  for (const absl::string_view magic : {kGzip, kXz, kZstd}) {
    if (bytes.size() < magic.size() && absl::StartsWith(magic, bytes)) return true;
  }
  return false;
}

int64_t Unpacker::Unpack(absl::string_view in, int64_t room, std::string* out) {
  const bool next = complete_ && !ready_;  // the bytes follow an archive
  if (!std::exchange(ready_, true) && !Reset()) {
    error_ = kNoMemory;
    return -1;
  }
  const size_t before = out->size();
  out->resize(before + room);
  Buffer buffer = {in, out->data() + before, static_cast<size_t>(room)};
  bool end = false;
  const char* wrong = Run(&buffer, &end);
  out->resize(out->size() - buffer.room);
  full_ = buffer.room == 0 && !end;
  complete_ = end;
  ready_ = !end;
  if (wrong == nullptr) return in.size() - buffer.in.size();
  error_ = next ? "other data follow the end of the archive" : wrong;
  return -1;
}

}  // namespace cloze
