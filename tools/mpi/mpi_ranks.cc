#include "tools/mpi/mpi_ranks.h"

#include <sched.h>
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>

#include "absl/strings/str_join.h"
#include "core/base/system.h"
#include "tasks/console/screen.h"
#include "tools/ranks.h"

namespace cloze {
namespace {

constexpr int kLost = static_cast<int>(Exit::kInterrupted);
constexpr double kSpin = 0.02;          // seconds before a waiting rank leaves the core to others
constexpr double kNotice = 1;           // seconds before a waiting rank tells so
constexpr double kBeat = 5;             // most seconds between notices of a rank at work
constexpr double kLeave = 5;            // seconds that a rank with an error waits for the others
constexpr int64_t kMessage = 64 << 20;  // bytes of an MPI message

// Ends the process in ten seconds.
void EndSoon() {
  ::signal(SIGALRM, [](int) { ::_exit(kLost); });
  ::alarm(10);
}

void Say(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

}  // namespace

MpiRanks::MpiRanks() {
  int provided = 0;
  Check(::MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
  if (provided < MPI_THREAD_SERIALIZED) {
    Say("cloze-mpi: this MPI library does not let several threads call it in turn: expected "
        "MPI_THREAD_SERIALIZED");
    Abort(static_cast<int>(Exit::kInternal));
  }
  Check(::MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  Check(::MPI_Comm_size(MPI_COMM_WORLD, &size_));
  for (MPI_Comm* comm : {&work_, &notices_, &end_}) {
    Check(::MPI_Comm_dup(MPI_COMM_WORLD, comm));
    Check(::MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN));
  }
  char host[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  Check(::MPI_Get_processor_name(host, &length));
  std::vector<char> hosts(size_ * sizeof(host));
  Check(::MPI_Allgather(host, sizeof(host), MPI_CHAR, hosts.data(), sizeof(host), MPI_CHAR, work_));
  for (int r = 0; r < size_; ++r) hosts_.emplace_back(&hosts[r * sizeof(host)]);
  noticed_.resize(size_);
  heard_.resize(size_);
}

std::string MpiRanks::NameOf(int rank) const {
  return absl::StrCat("rank ", rank, " on ", hosts_[rank]);
}

void MpiRanks::Check(int error) {
  if (error == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  ::MPI_Error_string(error, text, &length);
  Say(absl::StrCat(
      "cloze-mpi: rank ", rank_, " has lost another rank: ", text, "; the same command resumes"));
  Abort(kLost);
}

void MpiRanks::CheckLauncher() const {
  if (::getppid() == launcher_) return;
  Say(absl::StrCat("cloze-mpi: ", name(), ": mpirun is gone; the same command resumes"));
  ::_exit(kLost);
}

void MpiRanks::Abort(int code) {
  EndSoon();  // a broken network may hold MPI_Abort
  ::MPI_Abort(MPI_COMM_WORLD, code);
  ::_exit(code);
}

void MpiRanks::Wait(std::vector<MPI_Request> requests) {
  CheckLauncher();
  double told = kNotice;
  std::unique_lock lock(mutex_);
  ++waits_;
  since_ = SteadySeconds();
  for (int done = 0;;) {
    Check(::MPI_Testall(requests.size(), requests.data(), &done, MPI_STATUSES_IGNORE));
    if (done != 0) return;
    const double waited = SteadySeconds() - since_;
    if (waited > told) {
      SendNotices();
      told = waited + kNotice;
    }
    if (IsLost(waited)) GiveUp();
    lock.unlock();
    const bool spins = waited <= kSpin && !background_;
    if (waited > kSpin) CheckLauncher();
    spins ? ::sched_yield() : ::usleep(background_ ? 500 : 200);
    lock.lock();
  }
}

void MpiRanks::BeginWork() {
  if (working_ || size_ == 1) return;
  working_ = true;
  beat_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    const std::chrono::duration<double> interval(std::min(timeout_ / 4, kBeat));
    while (!done_.wait_for(lock, interval, [this] { return !working_; })) SendNotices();
  });
}

void MpiRanks::EndWork() {
  if (!beat_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    working_ = false;
  }
  done_.notify_one();
  beat_.join();
}

bool MpiRanks::IsMissing(int rank) const {
  return noticed_[rank] < waits_ &&
         (!patient_ || SteadySeconds() - std::max(since_, heard_[rank]) > timeout_);
}

bool MpiRanks::IsLost(double waited) const {
  if (waited <= timeout_) return false;
  for (int r = 0; r < size_ && patient_; ++r)
    if (r != rank_ && IsMissing(r)) return true;
  return !patient_;
}

void MpiRanks::SendNotices() {
  ReceiveNotices();
  noticed_[rank_] = waits_;
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    Notice& notice = unfinished_.emplace_back(Notice{waits_});
    Check(::MPI_Isend(&notice.wait, 1, MPI_INT64_T, r, 0, notices_, &notice.request));
  }
}

void MpiRanks::ReceiveNotices() {
  for (int there = 1; there != 0;) {
    MPI_Status status;
    Check(::MPI_Iprobe(MPI_ANY_SOURCE, 0, notices_, &there, &status));
    if (there == 0) break;
    Check(::MPI_Recv(&noticed_[status.MPI_SOURCE], 1, MPI_INT64_T, status.MPI_SOURCE, 0, notices_,
        MPI_STATUS_IGNORE));
    heard_[status.MPI_SOURCE] = SteadySeconds();
  }
  std::erase_if(unfinished_, [](Notice& notice) {
    int done = 0;
    return ::MPI_Test(&notice.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
  });
}

void MpiRanks::GiveUp() {
  const double end = SteadySeconds() + 1;
  while (SteadySeconds() < end) ReceiveNotices();
  std::vector<std::string> silent;
  int speaker = rank_;  // the lowest one that waits
  for (int r = 0; r < size_; ++r) {
    if (IsMissing(r)) silent.push_back(NameOf(r));
    if (noticed_[r] >= waits_) speaker = std::min(speaker, r);
  }
  if (speaker == rank_) {
    Say(absl::StrCat("cloze-mpi: no answer for ", timeout_, " s from ",
        silent.empty() ? "the network" : absl::StrJoin(silent, ", "),
        ": the job ends; the same command resumes (distributed.timeout_seconds)"));
  } else {
    ::sleep(2);
  }
  Abort(kLost);
}

void MpiRanks::Sum(absl::Span<double> numbers) {
  std::vector<MPI_Request> requests(1);
  {
    const std::lock_guard lock(mutex_);
    Check(::MPI_Iallreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()),
        MPI_DOUBLE, MPI_SUM, work_, requests.data()));
  }
  Wait(std::move(requests));
}

void MpiRanks::Exchange(absl::Span<const Message> send, absl::Span<const Message> receive) {
  std::vector<MPI_Request> requests;
  std::unique_lock lock(mutex_);
  const auto each = [&](absl::Span<const Message> messages, auto start) {
    for (const Message& message : messages) {
      for (int64_t at = 0; at < message.bytes; at += kMessage)
        Check(start(message.data + at, static_cast<int>(std::min(kMessage, message.bytes - at)),
            message.rank, &requests.emplace_back()));
    }
  };
  each(receive, [&](char* data, int bytes, int rank, MPI_Request* request) {
    return ::MPI_Irecv(data, bytes, MPI_BYTE, rank, 0, work_, request);
  });
  each(send, [&](char* data, int bytes, int rank, MPI_Request* request) {
    return ::MPI_Isend(data, bytes, MPI_BYTE, rank, 0, work_, request);
  });
  lock.unlock();
  Wait(std::move(requests));
}

int MpiRanks::Leave(const absl::Status& status) {
  const auto code = static_cast<int>(ExitOf(status));
  std::vector<double> failed(size_);
  failed[rank_] = status.ok() ? 0 : 1;
  MPI_Request request;
  Check(::MPI_Iallreduce(MPI_IN_PLACE, failed.data(), size_, MPI_DOUBLE, MPI_SUM, end_, &request));
  const double most = status.ok() ? timeout_ : kLeave, start = SteadySeconds();
  for (int done = 0; done == 0; ::usleep(200)) {
    CheckLauncher();
    Check(::MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) break;
    if (SteadySeconds() - start < most) continue;
    Say(absl::StrCat("cloze-mpi: ", name(), ": ",
        status.ok() ? "no answer from other ranks at the end" : status.message()));
    Abort(status.ok() ? kLost : code);
  }
  const auto lowest = std::find(failed.begin(), failed.end(), 1.0);
  if (lowest - failed.begin() == rank_) Say(ForTerminal(status.message()));
  EndSoon();  // MPI_Finalize waits for the other ranks and for mpirun
  ::MPI_Finalize();
  return code;
}

Ranks& ProgramRanks() {
  static MpiRanks ranks;
  return ranks;
}

int LeaveRanks(const absl::Status& status) {
  return static_cast<MpiRanks&>(ProgramRanks()).Leave(status);
}

}  // namespace cloze
