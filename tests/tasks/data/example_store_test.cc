#include "tasks/data/example_store.h"

#include <thread>

#include "core/base/file.h"
#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

class ExampleStoreTest : public FilesTest {
 protected:
  // Example i: 1 + i % 7 ids, some with labels, some with a pair, some that continue.
  static Example Make(int i, int32_t vocab, int32_t labels) {
    Example e;
    for (int k = 0; k <= i % 7; ++k) e.ids.push_back((i * 31 + k * 7) % vocab);
    if (i == 0) e.ids[0] = vocab - 1;
    e.second = i % 2 == 0 ? e.ids.size() : e.ids.size() / 2;
    for (int k = 0; labels > 0 && k < e.ids.size(); k += 2)
      e.rows.push_back(k), e.labels.push_back((i + k) % labels),
          e.further.push_back(k + 1 < e.ids.size() ? i % 2 : 0);
    e.continues = i % 3 == 1;
    return e;
  }
  std::string Build(const std::string& name, int n, int32_t vocab, int32_t labels) {
    auto writer = ExampleStoreWriter::Create(Path(name), vocab, labels);
    EXPECT_TRUE(writer.ok()) << writer.status();
    for (int i = 0; i < n; ++i) EXPECT_TRUE((*writer)->Add(Make(i, vocab, labels)).ok());
    DataStats stats;
    stats.bytes = 1234;
    EXPECT_TRUE((*writer)->Finish(stats).ok());
    return Path(name);
  }
  // Opens and reads all: the first error, or ok.
  static absl::Status ReadAll(const std::string& folder, int32_t vocab, int32_t labels) {
    ASSIGN_OR_RETURN(const ExampleStore store, ExampleStore::Open(folder, vocab, labels));
    Example e;
    for (int64_t i = 0; i < store.size(); ++i) RETURN_IF_ERROR(store.Read(i, &e));
    return absl::OkStatus();
  }
  // Overwrites one byte. In place: writing anew would wait for the disk each time.
  static void Patch(const std::string& path, size_t at, char byte) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at).put(byte);
  }
  static void ExpectSame(const Example& a, const Example& b) {
    EXPECT_EQ(a.ids, b.ids);
    EXPECT_EQ(a.second, b.second);
    EXPECT_EQ(a.rows, b.rows);
    EXPECT_EQ(a.further, b.further);
    EXPECT_EQ(a.labels, b.labels);
    EXPECT_EQ(a.continues, b.continues);
  }
};

TEST_F(ExampleStoreTest, ReturnsWhatWasAdded) {
  for (const int32_t vocab : {100, 65536, 65537, 1000000}) {
    for (const int32_t labels : {0, 3}) {
      SCOPED_TRACE(absl::StrCat(vocab, " tokens, ", labels, " labels"));
      const std::string folder = Build(absl::StrCat("s", vocab, "-", labels), 1000, vocab, labels);
      const auto store = ExampleStore::Open(folder, vocab, labels);
      ASSERT_TRUE(store.ok()) << store.status();
      EXPECT_TRUE(store->VerifyContent().ok());
      EXPECT_EQ(store->size(), 1000);
      EXPECT_EQ(store->stats().bytes, 1234);
      EXPECT_EQ(store->stats().examples, 1000);
      int64_t tokens = 0;
      Example e;
      for (int i = 999; i >= 0; --i) {
        ASSERT_TRUE(store->Read(i, &e).ok());
        ExpectSame(e, Make(i, vocab, labels));
        tokens += e.ids.size();
      }
      EXPECT_EQ(store->tokens(), tokens);
      EXPECT_EQ(store->stats().tokens, tokens);
      EXPECT_EQ(*FileSize(JoinPath(folder, "tokens")), tokens * (vocab <= 65536 ? 2 : 4));
    }
  }
}

TEST_F(ExampleStoreTest, ThreadsReadAtOnce) {
  const std::string folder = Build("s", 2000, 100, 3);
  const auto store = ExampleStore::Open(folder, 100, 3);
  ASSERT_TRUE(store.ok());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Example e;
      for (int i = t; i < 2000; i += 3)
        wrong += !store->Read(i, &e).ok() || e.ids != Make(i, 100, 3).ids;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ExampleStoreTest, NothingIsThereBeforeFinish) {
  {
    auto writer = ExampleStoreWriter::Create(Path("s"), 100, 0);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Add(Make(0, 100, 0)).ok());
    EXPECT_FALSE(PathExists(Path("s")));
    EXPECT_THAT(*ListDirectory(folder_), testing::ElementsAre(testing::StartsWith("s.tmp-")));
  }
  EXPECT_THAT(*ListDirectory(folder_), testing::IsEmpty());
}

TEST_F(ExampleStoreTest, TheFirstOfTwoWritersWins) {
  auto writer = ExampleStoreWriter::Create(Path("s"), 100, 0);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Add(Make(1, 100, 0)).ok());
  ASSERT_TRUE(std::filesystem::create_directory(Path("s")));
  Write("s/header", "other");
  EXPECT_TRUE((*writer)->Finish({}).ok());
  writer->reset();
  EXPECT_EQ(Read(Path("s/header")), "other");
  EXPECT_THAT(*ListDirectory(folder_), testing::ElementsAre("s"));
}

TEST_F(ExampleStoreTest, EveryTruncationIsFound) {
  const std::string folder = Build("s", 7, 100, 3);
  for (const std::string name : {"header", "index", "labels", "tokens"}) {
    const std::string path = JoinPath(folder, name), content = Read(path);
    for (size_t length = content.size(); length-- > 0;) {
      std::filesystem::resize_file(path, length);
      ExpectError(ExampleStore::Open(folder, 100, 3).status(), Exit::kData,
          absl::StrCat("s/", name, ": ", length, " bytes: expected ", content.size()));
    }
    Write("s/" + name, content + "x");
    ExpectError(ExampleStore::Open(folder, 100, 3).status(), Exit::kData,
        "delete the folder to rebuild it");
    std::filesystem::remove(path);
    ExpectError(
        ExampleStore::Open(folder, 100, 3).status(), Exit::kNoInput, "s/" + name + ": cannot open");
    Write("s/" + name, content);
  }
  EXPECT_TRUE(ReadAll(folder, 100, 3).ok());
}

TEST_F(ExampleStoreTest, EveryFlippedByteIsFound) {
  const std::string folder = Build("s", 7, 100, 3);
  for (const std::string name : {"header", "index", "labels", "tokens"}) {
    const std::string content = Read(JoinPath(folder, name));
    for (size_t at = 0; at < content.size(); ++at) {
      for (const int flip : {1, 0xFE}) {
        Patch(JoinPath(folder, name), at, content[at] ^ flip);
        ASSERT_FALSE(ReadAll(folder, 100, 3).ok()) << name << " " << at;
        const auto store = ExampleStore::Open(folder, 100, 3);
        const bool late = name == "labels" || name == "tokens";
        ASSERT_EQ(store.ok(), late);
        if (late)
          ExpectError(store->VerifyContent(), Exit::kData, "s/" + name + ": wrong checksum");
        Patch(JoinPath(folder, name), at, content[at]);
      }
    }
  }
  EXPECT_TRUE(ReadAll(folder, 100, 3).ok());
}

TEST_F(ExampleStoreTest, IndexChangedBehindOurBackIsFound) {
  const std::string folder = Build("s", 7, 100, 3);
  const auto store = ExampleStore::Open(folder, 100, 3);
  ASSERT_TRUE(store.ok());
  const std::string content = Read(folder + "/index");
  for (size_t at = 0; at < 32; ++at) {
    std::string wrong = content;
    wrong[5 * 32 + at] ^= 0xFF;
    Write("s/index", wrong);
    Example e;
    if (at != 23) {  // which of two windows a sentence has is not in the checksum of one
      EXPECT_EQ(ExitOf(store->Read(5, &e)), Exit::kData) << at;
    }
  }
  Write("s/index", "");
  Example e;
  EXPECT_EQ(ExitOf(store->Read(3, &e)), Exit::kData);
}

TEST_F(ExampleStoreTest, OtherVocabularyOrLabels) {
  const std::string folder = Build("s", 3, 100, 3);
  ExpectError(ExampleStore::Open(folder, 101, 3).status(), Exit::kMismatch,
      "made for 100 tokens and 3 labels: expected 101 and 3");
  ExpectError(ExampleStore::Open(folder, 100, 2).status(), Exit::kMismatch,
      "made for 100 tokens and 3 labels: expected 100 and 2");
}

TEST_F(ExampleStoreTest, RemovesOnlyStores) {
  const std::string folder = Build("s", 3, 100, 0);
  Write("s/mine.txt", "x");
  ExpectError(RemoveStore(folder), Exit::kCannotCreate, "s: cannot remove the old store");
  EXPECT_TRUE(PathExists(folder + "/mine.txt"));
  EXPECT_TRUE(RemoveStore(Path("none")).ok());
}

TEST_F(ExampleStoreTest, RemovesALinkAndNotItsTarget) {
  const std::string target = Build("target", 3, 100, 0), link = Path("link");
  ASSERT_EQ(::symlink(target.c_str(), link.c_str()), 0);
  EXPECT_TRUE(RemoveStore(link).ok());
  EXPECT_FALSE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(ExampleStore::Open(target, 100, 0).ok());
}

}  // namespace
}  // namespace cloze
