// Sockets to listen on.
#ifndef CLOZE_TOOLS_SERVE_SOCKETS_H_
#define CLOZE_TOOLS_SERVE_SOCKETS_H_

#include <string>
#include <vector>

#include "core/base/file.h"

namespace cloze {

struct ListeningSocket {
  Fd fd;                  // listens, does not block
  std::string name;       // "127.0.0.1:8080", with the port that the system chose for port 0
  std::string path = "";  // of a Unix socket that this process made
  bool local = true;      // only this machine can connect
};

// Listens on HOST:PORT, HOST an address ("[::1]" for IPv6) or localhost, or on unix:PATH; replaces
// the socket of a dead process there. kUsage for another form, kCannotCreate.
absl::StatusOr<ListeningSocket> ListenOn(const std::string& where);

// Returns the sockets that systemd opened for this process (sd_listen_fds). kUsage for one that
// does not listen.
absl::StatusOr<std::vector<ListeningSocket>> InheritedSockets();

}  // namespace cloze

#endif  // CLOZE_TOOLS_SERVE_SOCKETS_H_
