// Stores of pipes, and of text that is not UTF-8.
#include <set>

#include "core/base/file.h"
#include "tasks/data/readers.h"
#include "tasks/labels.h"
#include "tests/tasks/data/test_files.h"
#include "tests/tasks/stores.h"

namespace cloze {
namespace {

class BuildInputTest : public FilesTest {
 protected:
  BuildInputTest() { options_.cache_dir = Path("cache"); }
  absl::StatusOr<BuiltStore> Build(const DataSpec& data) const {
    MaskedLmSpec task;
    task.set_max_tokens(8);
    return BuildMaskedLm(data, task, *tokenizer_, options_);
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = SmallTokenizer();
  BuildOptions options_;
};

// The same bytes, read in another way.
TEST_F(BuildInputTest, TheCacheKnowsHowFilesAreRead) {
  std::set<std::string> names;
  const auto build = [&](const DataSpec& data, int64_t tokens) {
    const auto built =
        BuildClassification(data, SequenceClassificationSpec(), {"0", "1"}, *tokenizer_, options_);
    ASSERT_TRUE(built.ok()) << built.status();
    EXPECT_FALSE(built->reused);
    EXPECT_TRUE(names.insert(built->name()).second);
    EXPECT_EQ(built->store.stats().text_tokens, tokens);
  };
  DataSpec data = Data("a.csv", "a;0;b,1\n");
  data.set_header(false);
  data.set_text_field("1");
  data.set_label_field("2");
  data.set_delimiter(",");
  build(data, 5);
  data.set_delimiter(";");
  build(data, 1);
  data = Data("b.csv", "text,label\ncat \x80,1\n");
  data.set_encoding(DataSpec::LATIN1);
  build(data, 1);
  data.set_encoding(DataSpec::WINDOWS1252);
  build(data, 2);
  data = Data("c.csv", "text,label\nsat,1\n");  // its hash is above the share
  data.set_leave_out(0.5);
  data.set_share_rule(1);
  build(data, 1);
  data.set_share_rule(2);
  build(data, 1);
}

TEST_F(BuildInputTest, StoresOfPipesAreNamedByTheirContent) {
  DataSpec data;
  data.set_format(DataSpec::TEXT);
  const TextPipe first("the cat\n\nsat\n"), other("the mat\n\nsat\n"), same("the cat\n\nsat\n");
  data.add_files(first.path());
  const auto built = Build(data);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->store.size(), 2);
  EXPECT_EQ(built->note, "");
  EXPECT_TRUE(CheckSources(built->sources).ok());
  EXPECT_THAT(built->name(), testing::MatchesRegex("masked_lm-[0-9a-f]{32}-[0-9a-f]{16}"));
  for (const TextPipe* pipe : {&other, &same}) {
    data.set_files(0, pipe->path());
    const auto read = Build(data);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_FALSE(read->reused);
    EXPECT_EQ(read->note, "");
    EXPECT_EQ(read->name() == built->name(), pipe == &same);
  }
  EXPECT_EQ(ListDirectory(options_.cache_dir)->size(), 2);
}

TEST_F(BuildInputTest, AStoreOfAPipeServesTheRunThatMadeIt) {
  DataSpec data;
  data.set_format(DataSpec::TEXT);
  const TextPipe first("the cat\n\nsat\n"), other("the mat\n"), none(""), again("a b\n"),
      last("the cat\n\nsat\n");
  data.add_files(first.path());
  const auto built = Build(data);
  ASSERT_TRUE(built.ok()) << built.status();
  const std::string name = built->name(), folder = built->store.folder();
  // The run that made it: another stream is not read.
  options_.made = name;
  data.set_files(0, other.path());
  const auto resumed = Build(data);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_TRUE(resumed->reused);
  EXPECT_EQ(resumed->name(), name);
  EXPECT_THAT(resumed->note, testing::HasSubstr("no stream is read again"));
  // It was made with other settings, is damaged, or is not the one of its name.
  const auto ignored = [&](const TextPipe& pipe) {
    data.set_files(0, pipe.path());
    return Build(data);
  };
  options_.reads_streams = false;
  options_.made = "masked_lm-0-0";
  ExpectError(ignored(none).status(), Exit::kNoInput, "which only rank 0 can read");
  options_.made = absl::StrCat(name, "/../", name);
  ExpectError(ignored(none).status(), Exit::kNoInput, "which only rank 0 can read");
  options_.reads_streams = true;
  options_.made = name;
  std::filesystem::rename(folder, folder + "0");
  ExpectError(ignored(none).status(), Exit::kData, "0 usable examples (the run has no store");
  const auto read = ignored(again);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_NE(read->name(), name);
  std::filesystem::rename(read->store.folder(), folder);
  const auto restored = ignored(last);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_FALSE(restored->reused);
  EXPECT_EQ(restored->store.size(), 2);
  EXPECT_EQ(restored->name(), name);
}

// Earlier versions named the store of a stream by the key alone.
TEST_F(BuildInputTest, RunsOfEarlierVersionsKeepTheirStream) {
  DataSpec data;
  data.set_format(DataSpec::TEXT);
  const TextPipe first("the cat\n\nsat\n"), other("a b\n"), third("a b\n");
  data.add_files(first.path());
  const auto built = Build(data);
  ASSERT_TRUE(built.ok()) << built.status();
  const std::string earlier = built->name().substr(0, built->name().rfind('-'));
  std::filesystem::rename(built->store.folder(), JoinPath(options_.cache_dir, earlier));
  data.set_files(0, other.path());
  for (const std::string& made : {earlier, std::string(kUnnamedStore)}) {
    options_.made = made;
    const auto resumed = Build(data);
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_EQ(resumed->name(), earlier);
    EXPECT_EQ(resumed->store.size(), 2);
  }
  options_.made = "";  // another run
  EXPECT_EQ(Build(data)->store.size(), 1);
  RemoveStore(JoinPath(options_.cache_dir, earlier)).IgnoreError();
  options_.made = earlier;  // what it held cannot be known
  data.set_files(0, third.path());
  EXPECT_EQ(Build(data)->name(), earlier);
}

TEST_F(BuildInputTest, PipesAreReadOnce) {
  DataSpec data;
  data.set_format(DataSpec::TEXT);
  const TextPipe third("a b\n");
  data.add_files(third.path());
  data.set_share(0.5);
  ExpectError(Build(data).status(), Exit::kSpec,
      "can be read only once, but a held-out share needs two passes");
  data.clear_share();
  ExpectError(LearnTags(data).status(), Exit::kSpec,
      "can be read only once, but labels are collected in a first pass: expected a file (or list "
      "all `labels` in the spec)");
  ExpectError(SampleData(data, folder_, 10).status(), Exit::kSpec, "can be read only once");
}

TEST_F(BuildInputTest, TextThatIsNotUtf8IsNamed) {
  const std::string text = "the cat\n\nsat\n\nthe c\xE4t\n";
  ExpectError(Build(Data("many.txt", text)).status(), Exit::kData,
      "many.txt:5: not UTF-8, perhaps Windows-1252 or Latin-1; 1 of 5 lines");
  DataSpec data = Data("a.txt", text + std::string(1000, '\n'));
  const auto built = Build(data);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_THAT(built->note, testing::HasSubstr("warning: "));
  EXPECT_THAT(built->note, testing::HasSubstr("a.txt:5: not UTF-8, perhaps Windows-1252"));
  EXPECT_THAT(built->note, testing::HasSubstr("set its encoding: WINDOWS1252"));
  data.set_encoding(DataSpec::WINDOWS1252);
  EXPECT_EQ(Build(data)->note, "");
  ExpectError(Build(Data("b.txt", std::string("t\0h\0e\0 \0c\0", 10))).status(), Exit::kData,
      "b.txt: is UTF-16 text: expected UTF-8 text (convert it, or set its encoding: "
      "UTF16)");
}

}  // namespace
}  // namespace cloze
