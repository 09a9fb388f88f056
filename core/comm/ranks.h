// The processes that train one model together. `cloze` has one; tools/mpi joins several over MPI.
#ifndef CLOZE_CORE_COMM_RANKS_H_
#define CLOZE_CORE_COMM_RANKS_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/status.h"

namespace cloze {

// All ranks must call the same methods in the same order, from one thread at a time. A rank that
// loses contact with another ends the job. This base class implements a single rank.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  bool first() const { return rank() == 0; }
  // "rank 2 on node-7".
  virtual std::string name() const { return "rank 0"; }

  // Replaces each number by its sum over the ranks. Exact when one rank contributes, which
  // Broadcast and Gather rely on.
  virtual void Sum(absl::Span<double> /*numbers*/) {}
  // Replaces the value by that of rank 0. T is trivially copyable or std::string.
  template <typename T>
  void Broadcast(T* value) {
    *value = Gather(*value).front();
  }
  // Returns the values of all ranks, by rank. T is trivially copyable.
  template <typename T>
  std::vector<T> Gather(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(size());
    GatherBytes(&mine, sizeof(T), all.data());
    return all;
  }

  // Returns the bytes of each rank.
  std::vector<std::string> Gather(std::string bytes);

  // Bytes that go to or come from a rank.
  struct Message {
    int rank;
    char* data;
    int64_t bytes;
  };
  // Sends and receives. Messages between two ranks arrive in order.
  virtual void Exchange(absl::Span<const Message> /*send*/, absl::Span<const Message> /*receive*/) {
  }
  // Seconds that a rank waits for the others before it ends the job.
  void set_timeout(double seconds) { timeout_ = seconds; }
  // True while another thread computes: waiting then sleeps, which leaves the core to that thread.
  void set_background(bool background) { background_ = background; }

  // Returns the error of the lowest rank that has one, on every rank.
  absl::Status Agree(const absl::Status& status);
  // Calls f on every rank; f may take any time. A waiting rank ends the job only if a working rank
  // stays silent for the timeout. Returns the error of the lowest rank that has one.
  absl::Status RunCollectively(absl::FunctionRef<absl::Status()> f);
  // Calls f on rank 0 only; the others wait for any time. Returns its status on every rank.
  absl::Status OnRoot(absl::FunctionRef<absl::Status()> f);
  // Returns kMismatch, with the name of the rank, if `value` is not that of rank 0. `what` names
  // the value in the message, such as "the spec".
  absl::Status CheckSame(absl::string_view what, absl::string_view value);

 protected:
  // Called around work that may take any time.
  virtual void BeginWork() {}
  virtual void EndWork() {}

  // Copies n bytes of each rank to `all`, by rank.
  void GatherBytes(const void* mine, size_t n, void* all);

  double timeout_ = 300;
  std::atomic<bool> background_ = false;
  bool patient_ = false;  // in RunCollectively: the others may work for any time
};

// Returns the message of n floats; those to send are only read.
inline Ranks::Message MessageOf(int rank, const float* data, int64_t n) {
  return {rank, reinterpret_cast<char*>(const_cast<float*>(data)),
      n * static_cast<int64_t>(sizeof(float))};
}

// The only rank of its process.
Ranks& OneRank();

}  // namespace cloze

#endif  // CLOZE_CORE_COMM_RANKS_H_
