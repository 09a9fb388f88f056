// Parses a task spec; lines that begin with "--set " are overrides. A valid spec prints as an equal
// one.
#include <google/protobuf/util/message_differencer.h>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/spec.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cloze;
  std::string text;
  std::vector<std::string> overrides;
  for (absl::string_view line :
      absl::StrSplit(absl::string_view(reinterpret_cast<const char*>(data), size), '\n')) {
    if (absl::ConsumePrefix(&line, "--set ")) {
      overrides.emplace_back(line);
    } else {
      absl::StrAppend(&text, line, "\n");
    }
  }
  auto loaded = ParseSpec(text, "x.textproto");
  fuzz::CheckError(loaded.status());
  if (!loaded.ok()) return 0;
  for (const std::string& assignment : overrides)
    fuzz::CheckError(ApplyOverride(&*loaded, assignment));
  const absl::Status verified = VerifySpec(*loaded);
  if (!verified.ok()) CLOZE_CHECK(ExitOf(verified) == Exit::kSpec);
  if (!verified.ok()) return 0;
  const auto again = ParseSpec(PrintEffective(loaded->spec), "again");
  CLOZE_CHECK(again.ok() && VerifySpec(*again).ok());
  CLOZE_CHECK(google::protobuf::util::MessageDifferencer::Equals(
      EffectiveSpec(again->spec), EffectiveSpec(loaded->spec)));
  return 0;
}
