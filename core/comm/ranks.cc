#include "core/comm/ranks.h"

#include <algorithm>
#include <utility>
#include <vector>

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

void Ranks::Broadcast(std::string* bytes) {
  auto size = static_cast<double>(first() ? bytes->size() : 0);
  Sum({&size, 1});
  bytes->resize(static_cast<size_t>(size));
  std::vector<Message> send, receive;
  const auto length = static_cast<int64_t>(bytes->size());
  for (int r = 1; r < this->size() && first(); ++r) send.push_back({r, bytes->data(), length});
  if (!first()) receive.push_back({0, bytes->data(), length});
  Exchange(send, receive);
}

absl::Status Ranks::Agree(const absl::Status& status) {
  if (size() == 1) return status;
  std::vector<double> codes(size());
  codes[rank()] = static_cast<int>(ExitOf(status));
  Sum(absl::MakeSpan(codes));
  const auto found = std::find_if(codes.begin(), codes.end(), [](double c) { return c != 0; });
  if (found == codes.end()) return absl::OkStatus();
  const auto from = static_cast<int>(found - codes.begin());
  constexpr int64_t kMost = 4096;  // bytes of a message
  std::string message(kMost, '\0');
  if (rank() == from) {
    const std::string own =
        from == 0 ? std::string(status.message()) : absl::StrCat(name(), ": ", status.message());
    own.copy(message.data(), kMost);
  }
  std::vector<Message> send, receive;
  for (int r = 0; r < size() && rank() == from; ++r) {
    if (r != from) send.push_back({r, message.data(), kMost});
  }
  if (rank() != from) receive.push_back({from, message.data(), kMost});
  Exchange(send, receive);
  return Error(static_cast<Exit>(*found), message.substr(0, message.find('\0')));
}

absl::Status Ranks::OnFirst(absl::FunctionRef<absl::Status()> f) {
  return Together([&] { return first() ? f() : absl::OkStatus(); });
}

absl::Status Ranks::Together(absl::FunctionRef<absl::Status()> f) {
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
