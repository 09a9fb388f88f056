#include "core/comm/ranks.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace cloze {
namespace {

// Returns the first line of `text` that differs from the line of `other` in the same place.
std::string FirstDifference(absl::string_view text, absl::string_view other) {
  size_t at =
      std::mismatch(text.begin(), text.end(), other.begin(), other.end()).first - text.begin();
  at = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  return Quote(text.substr(at, text.find('\n', at) - at));
}

}  // namespace

Ranks& OneRank() {
  static Ranks one;
  return one;
}

void Ranks::GatherBytes(const void* mine, size_t n, void* all) {
  std::vector<double> numbers(n * size());
  std::copy_n(static_cast<const uint8_t*>(mine), n, numbers.begin() + n * rank());
  Sum(absl::MakeSpan(numbers));
  std::copy(numbers.begin(), numbers.end(), static_cast<uint8_t*>(all));
}

std::vector<std::string> Ranks::Gather(std::string bytes) {
  const std::vector<size_t> sizes = Gather(bytes.size());
  std::vector<std::string> all(size());
  std::vector<Message> send, receive;
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    all[r].resize(sizes[r]);
    send.push_back({r, bytes.data(), static_cast<int64_t>(bytes.size())});
    receive.push_back({r, all[r].data(), static_cast<int64_t>(all[r].size())});
  }
  Exchange(send, receive);
  all[rank()] = std::move(bytes);
  return all;
}

absl::Status Ranks::Agree(const absl::Status& status) {
  if (size() == 1) return status;
  const std::vector<Exit> codes = Gather(ExitOf(status));
  const auto found =
      std::find_if(codes.begin(), codes.end(), [](Exit code) { return code != Exit::kOk; });
  if (found == codes.end()) return absl::OkStatus();
  const std::vector<std::string> messages =
      Gather(absl::StrCat(first() ? "" : name() + ": ", status.message()));
  return Error(*found, messages[found - codes.begin()]);
}

absl::Status Ranks::OnRoot(absl::FunctionRef<absl::Status()> f) {
  return RunCollectively([&] { return first() ? f() : absl::OkStatus(); });
}

absl::Status Ranks::RunCollectively(absl::FunctionRef<absl::Status()> f) {
  const bool before = std::exchange(patient_, true);
  absl::Status status;
  {
    BeginWork();
    const absl::Cleanup end = [this] { EndWork(); };
    status = f();
  }
  status = Agree(status);
  patient_ = before;
  return status;
}

absl::Status Ranks::CheckSame(absl::string_view what, absl::string_view value) {
  if (size() == 1) return absl::OkStatus();
  std::string expected(value);
  Broadcast(&expected);
  return Agree(value == expected
                   ? absl::OkStatus()
                   : Error(Exit::kMismatch, what, ": \"", FirstDifference(value, expected),
                         "\": expected \"", FirstDifference(expected, value), "\" as on rank 0"));
}

}  // namespace cloze
