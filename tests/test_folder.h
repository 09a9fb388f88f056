// A folder of a test's own.
#ifndef CLOZE_TESTS_TEST_FOLDER_H_
#define CLOZE_TESTS_TEST_FOLDER_H_

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace cloze {

// In $TMPDIR or the system's place; goes away with the object, with all that is in it.
class TestFolder {
 public:
  TestFolder() : path_(std::filesystem::temp_directory_path() / "cloze-test-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace cloze

#endif  // CLOZE_TESTS_TEST_FOLDER_H_
