// Folders written by release 0.1 (tests/golden/make_release.py, commit 4a9ef4e) still load, answer
// as they did, verify, and resume.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tests/tools/run.h"

namespace cloze {
namespace {

using nlohmann::json;

// A safetensors file of f32 and i32 tensors, read without the product's reader.
struct Tensors {
  json header;
  std::string data;

  explicit Tensors(const std::string& path) {
    const std::string file = Content(path);
    uint64_t length = 0;
    if (file.size() < sizeof(length)) throw std::runtime_error(path + " is missing or cut");
    std::memcpy(&length, file.data(), sizeof(length));
    header = json::parse(file.substr(sizeof(length), length));
    data = file.substr(sizeof(length) + length);
  }
  std::vector<float> Values(const std::string& name) const {
    const auto range = header.at(name).at("data_offsets").get<std::vector<size_t>>();
    std::vector<float> values((range[1] - range[0]) / sizeof(float));
    std::memcpy(values.data(), data.data() + range[0], range[1] - range[0]);
    return values;
  }
};

// All tensors of `was` are in `is`, with values at most `tolerance` apart.
void ExpectNear(const std::string& was_path, const std::string& is_path, float tolerance) {
  const Tensors was(was_path), is(is_path);
  for (const auto& [name, info] : was.header.items()) {
    if (name == "__metadata__") continue;
    ASSERT_TRUE(is.header.contains(name)) << is_path << " has no " << name;
    EXPECT_EQ(is.header[name]["shape"], info["shape"]) << name;
    EXPECT_EQ(is.header[name]["dtype"], info["dtype"]) << name;
    const std::vector<float> a = was.Values(name), b = is.Values(name);
    ASSERT_EQ(a.size(), b.size()) << name;
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::memcmp(&a[i], &b[i], sizeof(float)) == 0) continue;
      ASSERT_NEAR(a[i], b[i], tolerance) << is_path << ": " << name << "[" << i << "]";
    }
  }
}

// Everything in `was` is in `is`, numbers within 2e-5; newer releases may add members.
void ExpectIncludes(const json& was, const json& is, const std::string& where) {
  if (was.is_number()) {
    ASSERT_TRUE(is.is_number()) << where << ": " << is;
    EXPECT_NEAR(is.get<double>(), was.get<double>(), 2e-5 * (1 + std::abs(was.get<double>())))
        << where;
  } else if (was.is_object()) {
    ASSERT_TRUE(is.is_object()) << where << ": " << is;
    for (const auto& [name, value] : was.items()) {
      ASSERT_TRUE(is.contains(name)) << where << " has no " << name;
      ExpectIncludes(value, is[name], where + "." + name);
    }
  } else if (was.is_array()) {
    ASSERT_TRUE(is.is_array()) << where << ": " << is;
    ASSERT_EQ(is.size(), was.size()) << where;
    for (size_t i = 0; i < was.size(); ++i)
      ExpectIncludes(was[i], is[i], where + "[" + std::to_string(i) + "]");
  } else {
    EXPECT_EQ(is, was) << where;
  }
}

// Release 0.1 named the base of an adapter from the working directory.
const std::string kAdapter = " runs/pre_norm --adapter runs/lora";

// Works on a copy, since resuming writes.
class CompatibilityTest : public testing::Test {
 protected:
  CompatibilityTest() : dir_(TemporaryFolder() + "/release") {
    std::filesystem::copy(CLOZE_SOURCE_DIR "/tests/golden/release_0.1", dir_,
        std::filesystem::copy_options::recursive);
  }
  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  RunResult Run(const std::string& arguments) const {
    return RunCloze(arguments, "cd " + dir_ + " && ");
  }

 private:
  const std::string dir_;
};

TEST_F(CompatibilityTest, ModelsAnswerAsTheyDid) {
  const std::vector<json> cases = JsonLines(Content(Path("expected/cases.jsonl")));
  ASSERT_EQ(cases.size(), 28);
  for (const json& expected : cases) {
    std::string arguments;
    for (const std::string argument : expected["arguments"])
      arguments += argument == "runs/lora" ? kAdapter : " '" + argument + "'";
    SCOPED_TRACE(arguments);
    const bool encode = expected.contains("file");
    const RunResult r = Run(arguments + (encode ? " --out encoded" : ""));
    ASSERT_EQ(r.exit, 0) << r.err;
    if (encode) {
      ExpectNear(Path(expected["file"]), Path("encoded"), 1e-5);
      std::filesystem::remove(Path("encoded"));
      continue;
    }
    ExpectIncludes(expected["lines"], JsonLines(r.out), "line");
  }
}

TEST_F(CompatibilityTest, FoldersAreSound) {
  int count = 0;
  for (const auto& run : std::filesystem::directory_iterator(Path("runs"))) {
    const RunResult r =
        Run("verify runs/" + run.path().filename().string() + " --model runs/pre_norm");
    EXPECT_EQ(r.exit, 0) << r.err;
    for (const json& line : JsonLines(r.out)) {
      EXPECT_EQ(line["sound"], true) << line;
      ++count;
    }
  }
  EXPECT_EQ(count, 13);  // twelve models, one checkpoint
}

TEST_F(CompatibilityTest, TheAdapterMergesIntoItsBase) {
  const RunResult merge = Run("merge --model" + kAdapter + " --out merged");
  ASSERT_EQ(merge.exit, 0) << merge.err;
  const RunResult adapter = Run("predict --model" + kAdapter + " data/new.txt"),
                  merged = Run("predict --model merged data/new.txt");
  ASSERT_EQ(adapter.exit, 0) << adapter.err;
  ASSERT_EQ(merged.exit, 0) << merged.err;
  const std::vector<json> a = JsonLines(adapter.out), b = JsonLines(merged.out);
  ASSERT_EQ(a.size(), 4);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ExpectIncludes(a[i], b[i], "line");
}

std::vector<std::string> FilesOf(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.is_regular_file())
      files.push_back(std::filesystem::relative(file.path(), folder).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST_F(CompatibilityTest, AStoppedRunEndsLikeOneThatWasNot) {
  const std::string run = Path("runs/post_norm/");
  const auto cached = FilesOf(run + "cache");
  ASSERT_EQ(cached.size(), 8);  // two token stores
  const RunResult r = Run("pretrain specs/post_norm.textproto");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.err, testing::HasSubstr("step-00000020"));  // resumed, not begun again
  EXPECT_EQ(FilesOf(run + "cache"), cached);                // the token stores still fit

  // Its steps have two passes, whose gradients release 0.1 added in another order.
  EXPECT_THAT(r.err, testing::HasSubstr("warning: the checkpoint was written "));
  const std::pair<const char*, std::string> kFiles[] = {{"model.safetensors", "model.safetensors"},
      {"last.safetensors", "step-00000060/model.safetensors"},
      {"optimizer.safetensors", "step-00000060/optimizer.safetensors"}};
  for (const auto& [name, path] : kFiles) ExpectNear(Path("finished/") + name, run + path, 1e-5);
  const RunResult verify = Run("verify runs/post_norm");
  EXPECT_EQ(verify.exit, 0) << verify.err;
  const json finished = json::parse(Content(Path("finished/metrics.json")));
  ExpectIncludes(finished, json::parse(Content(run + "metrics.json")), "metrics");
}

}  // namespace
}  // namespace cloze
