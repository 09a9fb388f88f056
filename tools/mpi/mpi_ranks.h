// The ranks of an MPI job. Only this room uses MPI.
#ifndef CLOZE_TOOLS_MPI_MPI_RANKS_H_
#define CLOZE_TOOLS_MPI_MPI_RANKS_H_

#include <mpi.h>
#include <unistd.h>

#include <condition_variable>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/comm/ranks.h"

namespace cloze {

// Waits by polling, so that a rank that does not answer is found and named.
class MpiRanks : public Ranks {
 public:
  // Initializes MPI. Ends the process on failure.
  MpiRanks();

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return NameOf(rank_); }
  void Sum(absl::Span<double> numbers) override;
  void Exchange(absl::Span<const Message> send, absl::Span<const Message> receive) override;

  // Finalizes MPI when all ranks have called this, and prints the error of the lowest rank that has
  // one. If the others do not come, a rank with an error ends the job. Returns the exit code.
  int Leave(const absl::Status& status);

 protected:
  // Until EndWork, a thread tells the other ranks that this one is at work.
  void BeginWork() override;
  void EndWork() override;

 private:
  std::string NameOf(int rank) const;
  // Ends the job if an MPI call failed: another rank is lost.
  void Check(int error);
  void Wait(std::vector<MPI_Request> requests);
  // Ends the process if mpirun has died: nothing would end it then.
  void CheckLauncher() const;
  // True if this rank, which has waited for `waited` seconds, must give up.
  bool IsLost(double waited) const;
  // True if `rank` has not come to where this one waits and, if it may be at work, has been silent
  // for the timeout too.
  bool IsMissing(int rank) const;
  // Tells the other ranks how far this one has come. Takes their notices.
  void SendNotices();
  // Takes the notices that have arrived.
  void ReceiveNotices();
  // Ends the job, naming the ranks that have not come to where this one waits.
  [[noreturn]] void GiveUp();
  [[noreturn]] void Abort(int code);

  const pid_t launcher_ = ::getppid();
  std::mutex mutex_;  // held during MPI calls; guards the members below
  std::condition_variable done_;
  bool working_ = false;
  std::thread beat_;
  int rank_ = 0, size_ = 1;
  MPI_Comm work_ = MPI_COMM_NULL, notices_ = MPI_COMM_NULL, end_ = MPI_COMM_NULL;
  std::vector<std::string> hosts_;  // of each rank
  int64_t waits_ = 0;               // so far; the same number on every rank
  std::vector<int64_t> noticed_;    // of each rank, the last wait that it has told
  std::vector<double> heard_;       // of each rank, the time of its last notice
  double since_ = 0;                // start of this wait
  struct Notice {
    int64_t wait;  // must not change before the request is complete
    MPI_Request request = MPI_REQUEST_NULL;
  };
  std::list<Notice> unfinished_;
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_MPI_MPI_RANKS_H_
