#include "tools/stop.h"

#include <unistd.h>

#include <csignal>

namespace cloze {
namespace {

std::atomic<bool> stop = false;

void OnSignal(int signal) {
  if (stop.exchange(true)) ::_exit(128 + signal);
}

}  // namespace

const std::atomic<bool>* StopOnSignals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before;
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) std::signal(signal, OnSignal);
  }
  return &stop;
}

}  // namespace cloze
