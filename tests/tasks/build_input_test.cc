// Stores of pipes, and of text that is not UTF-8.
#include <unistd.h>

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

// A pipe that holds `text` and then ends, as <(...) gives it.
class TextPipe {
 public:
  explicit TextPipe(const std::string& text) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    read_ = Fd(ends[0]);
    const Fd write(ends[1]);
    EXPECT_TRUE(WriteAll(write, "pipe", text.data(), text.size()).ok());
  }
  std::string path() const { return absl::StrCat("/dev/fd/", read_.get()); }

 private:
  Fd read_;
};

TEST_F(BuildInputTest, CacheOfAPipeIsReusedWithoutIt) {
  DataSpec data;
  data.set_format(DataSpec::TEXT);
  const TextPipe first("the cat\n\nsat\n"), second(""), third("a b\n");
  data.add_files(first.path());
  const auto built = Build(data);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->store.size(), 2);
  EXPECT_EQ(built->note, "");
  EXPECT_TRUE(CheckSources(built->sources).ok());
  data.set_files(0, second.path());
  const auto again = Build(data);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->reused);
  EXPECT_EQ(again->store.folder(), built->store.folder());
  EXPECT_THAT(again->note, testing::HasSubstr("the pipe is not read again"));
  options_.cache_dir = Path("cache2");
  ExpectError(Build(data).status(), Exit::kData, "0 usable examples");
  data.set_files(0, third.path());
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
  EXPECT_THAT(built->note, testing::HasSubstr("set encoding: WINDOWS1252"));
  data.set_encoding(DataSpec::WINDOWS1252);
  EXPECT_EQ(Build(data)->note, "");
  ExpectError(Build(Data("b.txt", std::string("t\0h\0e\0 \0c\0", 10))).status(), Exit::kData,
      "b.txt: is UTF-16 text: expected UTF-8 text (convert it, or set encoding: UTF16 in the "
      "spec, or with --set)");
}

}  // namespace
}  // namespace cloze
