// `cloze bench start`: times a new process up to its first answer. No other file starts a process,
// and this one starts only `cloze`.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "core/base/file.h"
#include "core/base/threads.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/tokenizer/tokenizer.h"
#include "encoder/folder/model_folder.h"
#include "encoder/model.h"
#include "tools/bench/bench.h"
#include "tools/process.h"

namespace cloze::bench {
namespace {

constexpr char kSentence[] = "a charming and often affecting journey that never loses its way .";

// Writes a classifier with random weights and a vocabulary that has the words of kSentence.
absl::Status WriteModel(const ModelConfig& config, const std::string& folder) {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  for (const char* word : {"a", "charming", "and", "often", "affecting", "journey", "that", "never",
           "loses", "its", "way", "."})
    tokens.push_back(word);
  for (int i = tokens.size(); i < config.vocab; ++i) tokens.push_back(absl::StrCat("zz", i));
  ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Create({.tokens = std::move(tokens)}));
  Model model(config, false);
  model.Initialize(1);
  RETURN_IF_ERROR(SaveWeights(folder, config, model.params()));
  return SaveTokenizer(*tokenizer, folder, config.max_tokens());
}

// Runs `cloze predict` on the text in `folder`. Returns its peak memory in 10^6 bytes.
absl::StatusOr<double> Predict(const std::string& folder, const std::string& compute) {
  const auto failed = [](int error) {
    return Error(Exit::kInternal, "cannot start cloze: ", std::strerror(error));
  };
  const std::string in = JoinPath(folder, "text"), out = JoinPath(folder, "answer");
  std::string words[] = {"cloze", "predict", "--model", folder, "--compute", compute, "--threads",
      absl::StrCat(Threads())};
  char* argv[std::size(words) + 1] = {};
  for (size_t i = 0; i < std::size(words); ++i) argv[i] = words[i].data();
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 0, in.c_str(), O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, "/proc/self/exe", &files, nullptr, argv, environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return failed(error);
  int status = 0;
  rusage usage;
  while (::wait4(child, &status, 0, &usage) < 0) {
    if (errno != EINTR) return failed(errno);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Error(Exit::kInternal, "cloze predict failed (see its message above)");
  return usage.ru_maxrss * 1024e-6;
}

}  // namespace

absl::Status Start(const Options& o) {
  ASSIGN_OR_RETURN(const ModelConfig config, ConfigOf(o, HeadKind::kSequenceClassification));
  ASSIGN_OR_RETURN(const ScratchFolder folder, ScratchFolder::Create());
  RETURN_IF_ERROR(WriteModel(config, folder.path()));
  RETURN_IF_ERROR(WriteNewFile(JoinPath(folder.path(), "text"), absl::StrCat(kSentence, "\n")));
  absl::Status status;
  double megabytes = 0;
  ResetPeakMemory();  // a child inherits the peak
  const auto once = [&](int) {
    const absl::StatusOr<double> peak = Predict(folder.path(), o.compute);
    status.Update(peak.status());
    if (peak.ok()) megabytes = std::max(megabytes, *peak);
  };
  const Timing timing = TimeSteps(once, std::max(5, o.steps), 1);
  RETURN_IF_ERROR(status);
  Line line(o, "cold_start_cls", o.compute == "auto" || o.compute == "f32" ? "fp32" : o.compute,
      absl::StrCat(o.encoder, "/v", config.vocab), 1, 14);
  return line.AddTiming(timing, 0)
      .Set("peak_rss_mb", megabytes)
      .Add("share_of_peak", std::nan(""))
      .Write();
}

}  // namespace cloze::bench
