// What the linker made of `cloze`: hardened, and without the means to start programs or to reach a
// network. Reads the ELF file itself.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/sanitized.h"

namespace cloze {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::MatchesRegex;

// The program's headers, dynamic section and imports.
class Elf {
 public:
  explicit Elf(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
    header_ = At<Elf64_Ehdr>(0);
    for (int i = 0; i < header_.e_phnum; ++i)
      segments_.push_back(At<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr)));
    for (const Elf64_Phdr& segment : segments_) {
      for (size_t at = 0; segment.p_type == PT_DYNAMIC && at < segment.p_filesz;
           at += sizeof(Elf64_Dyn)) {
        dynamic_.push_back(At<Elf64_Dyn>(segment.p_offset + at));
      }
    }
    ReadImports();
  }

  const Elf64_Ehdr& header() const { return header_; }
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }
  const std::set<std::string>& imports() const { return imports_; }
  bool Has(int64_t tag) const { return Find(tag) != nullptr; }
  // Bits of a dynamic entry; 0 when it is missing.
  uint64_t Value(int64_t tag) const { return Has(tag) ? Find(tag)->d_un.d_val : 0; }

 private:
  template <typename T>
  T At(uint64_t offset) const {
    T value = {};
    if (offset + sizeof(T) <= bytes_.size()) std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  const Elf64_Dyn* Find(int64_t tag) const {
    for (const Elf64_Dyn& entry : dynamic_) {
      if (entry.d_tag == tag) return &entry;
    }
    return nullptr;
  }
  // Names of .dynsym that are defined elsewhere.
  void ReadImports() {
    for (int i = 0; i < header_.e_shnum; ++i) {
      const auto section = At<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr));
      if (section.sh_type != SHT_DYNSYM) continue;
      const auto names = At<Elf64_Shdr>(header_.e_shoff + section.sh_link * sizeof(Elf64_Shdr));
      for (uint64_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
        const auto symbol = At<Elf64_Sym>(section.sh_offset + at);
        if (symbol.st_shndx == SHN_UNDEF && symbol.st_name != 0)
          imports_.insert(bytes_.data() + names.sh_offset + symbol.st_name);
      }
    }
  }

  std::string bytes_;
  Elf64_Ehdr header_;
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Dyn> dynamic_;
  std::set<std::string> imports_;
};

class BinaryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "sanitizers bring their own";
    ASSERT_EQ(std::memcmp(elf_.header().e_ident, ELFMAG, SELFMAG), 0) << CLOZE_BINARY;
  }
  const Elf elf_ = Elf(CLOZE_BINARY);
};

TEST_F(BinaryTest, IsHardened) {
  EXPECT_EQ(elf_.header().e_type, ET_DYN) << "position independent";
  EXPECT_TRUE(elf_.Value(DT_FLAGS_1) & DF_1_PIE);
  EXPECT_TRUE(elf_.Value(DT_FLAGS_1) & DF_1_NOW) << "no lazy binding";
  EXPECT_FALSE(elf_.Has(DT_TEXTREL));
  EXPECT_FALSE(elf_.Has(DT_RPATH) || elf_.Has(DT_RUNPATH))
      << "libraries come from the system's folders";
  bool stack = false, relro = false;
  for (const Elf64_Phdr& segment : elf_.segments()) {
    EXPECT_FALSE((segment.p_flags & PF_W) && (segment.p_flags & PF_X))
        << "a segment that is writable and executable";
    stack = stack || segment.p_type == PT_GNU_STACK;
    relro = relro || segment.p_type == PT_GNU_RELRO;
  }
  EXPECT_TRUE(stack && relro);
  EXPECT_THAT(elf_.imports(), Contains("__stack_chk_fail"));
  EXPECT_THAT(elf_.imports(), Contains(MatchesRegex("__.*_chk"))) << "_FORTIFY_SOURCE";
  EXPECT_THAT(elf_.imports(), Contains(MatchesRegex(".*__glibcxx_assert_fail.*")))
      << "_GLIBCXX_ASSERTIONS";
}

// posix_spawn is there for `cloze bench start`, and dlopen, if ONNX Runtime is installed, for
// `cloze export --check`; tests/rules/source_test.cc keeps them in their files.
TEST_F(BinaryTest, CannotStartProgramsOrReachANetwork) {
  static const std::set<std::string> kForbidden = {"system", "popen", "fork", "vfork", "execl",
      "execlp", "execle", "execv", "execvp", "execve", "execvpe", "fexecve", "posix_spawnp",
#ifndef CLOZE_ONNXRUNTIME
      "dlopen",
#endif
      "dlmopen", "socket", "connect", "bind", "listen", "accept", "getaddrinfo", "gethostbyname"};
  std::vector<std::string> found;
  for (const std::string& name : elf_.imports()) {
    if (kForbidden.count(name) > 0) found.push_back(name);
  }
  EXPECT_GT(elf_.imports().size(), 50);
  EXPECT_THAT(found, IsEmpty());
}

}  // namespace
}  // namespace cloze
