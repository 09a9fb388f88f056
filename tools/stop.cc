#include "tools/stop.h"

#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace cloze {
namespace {

std::atomic<bool> stop = false;

void OnSignal(int signal) {
  if (stop.exchange(true)) ::_exit(128 + signal);
}

}  // namespace

const std::atomic<bool>* StopOnSignals() {
  for (const int signal : {SIGINT, SIGTERM})
    std::signal(signal, OnSignal);  // also if ignored, as SIGINT in background jobs of a shell
  struct sigaction before;
  if (::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
    std::signal(SIGHUP, OnSignal);
  return &stop;
}

}  // namespace cloze
