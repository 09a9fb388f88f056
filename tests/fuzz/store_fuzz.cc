// The four files of a token cache, side by side: three lengths of two bytes (header, index,
// labels), then the bytes; the rest are the tokens. When the first byte is odd the checksums are
// made right, so that what they guard is reached.
#include <cstring>

#include "core/base/hash.h"
#include "tasks/data/example_store.h"
#include "tests/fuzz/input.h"

namespace cloze {
namespace {

constexpr int32_t kVocab = 300, kLabels = 5;

uint64_t HashOf(absl::string_view bytes) {
  Hasher hash;
  hash.Add(bytes.data(), bytes.size());
  return hash.Digest();
}

void MakeRight(
    std::string* header, std::string* index, absl::string_view labels, absl::string_view tokens) {
  for (size_t at = 0; at + sizeof(IndexRecord) <= index->size(); at += sizeof(IndexRecord)) {
    IndexRecord r;
    std::memcpy(&r, index->data() + at, sizeof(r));
    const std::string bytes = absl::StrCat(
        tokens.substr(std::min<size_t>(r.first_token * 2, tokens.size()), size_t{r.length} * 2),
        labels.substr(std::min<size_t>(r.first_label * 8, labels.size()),
            size_t{r.labels & ~kContinuesBit} * 8));
    r.check = static_cast<uint32_t>(Hash64(bytes.data(), bytes.size(), at / sizeof(IndexRecord)));
    std::memcpy(index->data() + at, &r, sizeof(r));
  }
  if (header->size() != sizeof(StoreHeader)) return;
  StoreHeader h;
  std::memcpy(&h, header->data(), sizeof(h));
  h.index_hash = HashOf(*index), h.labels_hash = HashOf(labels), h.tokens_hash = HashOf(tokens);
  h.self_hash = Hash64(&h, offsetof(StoreHeader, self_hash), kStoreMagic);
  std::memcpy(header->data(), &h, sizeof(h));
}

}  // namespace
}  // namespace cloze

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cloze;
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  const bool right = input.Byte() % 2 == 1;
  const uint32_t header_size = input.Number(), index_size = input.Number(),
                 labels_size = input.Number();
  std::string header(input.Take(header_size)), index(input.Take(index_size));
  const absl::string_view labels = input.Take(labels_size), tokens = input.Rest();
  if (right) MakeRight(&header, &index, labels, tokens);
  folder.Write("header", header), folder.Write("index", index), folder.Write("labels", labels),
      folder.Write("tokens", tokens);
  const auto store = ExampleStore::Open(folder.path(), kVocab, kLabels);
  fuzz::CheckError(store.status());
  if (!store.ok()) return 0;
  CLOZE_CHECK(store->size() > 0);
  fuzz::CheckError(store->VerifyContent());
  Example example;
  for (int64_t i = 0; i < store->size(); ++i) {
    const absl::Status status = store->Read(i, &example);
    fuzz::CheckError(status);
    if (!status.ok()) continue;
    for (const int32_t id : example.ids) CLOZE_CHECK(id >= 0 && id < kVocab);
    for (const int32_t row : example.rows)
      CLOZE_CHECK(row >= 0 && row < static_cast<int32_t>(example.ids.size()));
    for (const int32_t label : example.labels) CLOZE_CHECK(label >= 0 && label < kLabels);
    CLOZE_CHECK(example.second >= 0 && example.second <= static_cast<int32_t>(example.ids.size()));
  }
  return 0;
}
