// One request and its answer.
#ifndef CLOZE_TOOLS_SERVE_EXCHANGE_H_
#define CLOZE_TOOLS_SERVE_EXCHANGE_H_

#include <microhttpd.h>

#include <optional>
#include <string>

#include "tools/serve/server.h"

namespace cloze {

class Exchange {
 public:
  // Callbacks of libmicrohttpd; `server` is the Server.
  static MHD_Result OnRequest(void* server, MHD_Connection* connection, const char* path,
      const char* method, const char* version, const char* data, size_t* size, void** state);
  static void OnCompleted(
      void* server, MHD_Connection* connection, void** state, MHD_RequestTerminationCode code);

 private:
  Exchange(Server& server, MHD_Connection* connection, const char* path, const char* method);
  // Checks what the headers say. The reply of a request that they refuse is sent after its body.
  absl::Status CheckHeaders();
  absl::Status CheckKey() const;
  void AddBody(absl::string_view data);
  // Starts the work of a complete request. True if the connection is suspended until a model has
  // answered; another thread then changes this.
  bool Begin();
  void Refused(const absl::Status& status);
  MHD_Result Send();
  void Log() const;

  Server& server_;
  MHD_Connection* const connection_;
  ServedConnection* served_;
  const double begin_;
  const Route* route_ = nullptr;  // null: there is none
  std::string method_, path_, body_;
  int64_t bytes_ = 0;  // of the body, also of one that is not kept
  bool begun_ = false;
  Work work_;
  std::optional<Outcomes> outcomes_;
  std::optional<Reply> reply_;
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_SERVE_EXCHANGE_H_
