#include "tools/serve/exchange.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/json.h"
#include "core/base/system.h"

namespace cloze {
namespace {

// A body up to this many times the limit is read to its end, so that the client reads the refusal.
constexpr int64_t kReadAnyway = 8;

std::string Header(MHD_Connection* connection, const char* name) {
  const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? "" : value;
}

// Returns the length of the body that the headers tell; 0 if they do not.
int64_t ContentLength(MHD_Connection* connection) {
  int64_t length = 0;
  const bool told = absl::SimpleAtoi(Header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH), &length);
  return told ? length : 0;
}

int CountHeaders(MHD_Connection* connection, const char* name) {
  std::pair<absl::string_view, int> counted(name, 0);
  const auto count = [](void* counted, MHD_ValueKind, const char* key, const char*) {
    auto& [name, n] = *static_cast<std::pair<absl::string_view, int>*>(counted);
    n += absl::EqualsIgnoreCase(key, name);
    return MHD_YES;
  };
  MHD_get_connection_values(connection, MHD_HEADER_KIND, count, &counted);
  return counted.second;
}

// Returns the time as "2026-11-29T09:45:27.123Z".
std::string Now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = ms / 1000;
  std::tm utc;
  ::gmtime_r(&seconds, &utc);
  return absl::StrFormat("%d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900, utc.tm_mon + 1,
      utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, ms % 1000);
}

// Compares in a time that does not depend on where they differ.
bool SameKey(absl::string_view given, absl::string_view key) {
  unsigned char different = given.size() != key.size();
  for (size_t i = 0; i < given.size(); ++i) different |= given[i] ^ key[i % key.size()];
  return different == 0;
}

}  // namespace

Exchange::Exchange(Server& server, MHD_Connection* connection, const char* path, const char* method)
    : server_(server), connection_(connection), begin_(SteadySeconds()), method_(method),
      path_(path) {
  served_ = static_cast<ServedConnection*>(
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);
  served_->deadline = begin_ + server.options_.timeout;
  ++server.open_requests_;
  if (const absl::Status status = CheckHeaders(); !status.ok()) Refused(status);
}

absl::Status Exchange::CheckHeaders() {
  // Two lengths, or two framings, may mean another request to a proxy than to us.
  const int lengths = CountHeaders(connection_, MHD_HTTP_HEADER_CONTENT_LENGTH);
  if (lengths + CountHeaders(connection_, MHD_HTTP_HEADER_TRANSFER_ENCODING) > 1)
    return Refuse(Refusal::kSyntax, "Content-Length: more than one length: expected one");
  if (method_ == "OPTIONS" && !server_.options_.allow_origin.empty()) {
    reply_ = Reply{204, "", "text/plain", ""};
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(route_, FindRoute(method_, path_));
  if (!route_->open) RETURN_IF_ERROR(CheckKey());
  if (server_.draining_)
    return Refuse(Refusal::kUnavailable, "the server is stopping (try another one)");
  const int64_t length = ContentLength(connection_);
  if (length > server_.context_.limits.body)
    return Refuse(Refusal::kBody, "the body has ", length, " bytes: expected at most ",
        server_.context_.limits.body, " (the server's --max-body)");
  return absl::OkStatus();
}

absl::Status Exchange::CheckKey() const {
  const std::string& key = server_.options_.key;
  if (key.empty()) return absl::OkStatus();
  const std::string header = Header(connection_, MHD_HTTP_HEADER_AUTHORIZATION);
  absl::string_view given = header;
  std::string decoded;
  if (absl::ConsumePrefix(&given, "Basic ") && absl::Base64Unescape(given, &decoded)) {
    given = absl::string_view(decoded).substr(decoded.find(':') + 1);  // a browser asks for it
  } else {
    absl::ConsumePrefix(&given, "Bearer ");
  }
  if (SameKey(given, key)) return absl::OkStatus();
  return Refuse(Refusal::kKey, given.empty() ? "no key" : "wrong key",
      ": expected the header \"Authorization: Bearer KEY\"");
}

void Exchange::AddBody(absl::string_view data) {
  bytes_ += std::ssize(data);
  if (reply_.has_value()) return;
  if (bytes_ > server_.context_.limits.body) {
    body_.clear();
    body_.shrink_to_fit();
    Refused(Refuse(Refusal::kBody, "the body has more than ", server_.context_.limits.body,
        " bytes (the server's --max-body)"));
    return;
  }
  body_.append(data.data(), data.size());
}

void Exchange::Refused(const absl::Status& status) {
  reply_ = ReplyOf(status, route_ != nullptr ? route_->openai : absl::StartsWith(path_, "/v1/"));
}

bool Exchange::Begin() {
  begun_ = true;
  if (reply_.has_value()) return false;
  const char* const model =
      MHD_lookup_connection_value(connection_, MHD_GET_ARGUMENT_KIND, "model");
  absl::StatusOr<Work> work =
      ReadRequest(*route_, server_.context_, body_, model == nullptr ? "" : model);
  if (!work.ok()) {
    Refused(work.status());
    return false;
  }
  work_ = *std::move(work);
  if (work_.records.empty()) {
    outcomes_.emplace(std::vector<Outcome>());
    return false;
  }
  Job job = {
      work_.model.engine, work_.operation, std::move(work_.records), [this](Outcomes outcomes) {
        outcomes_ = std::move(outcomes);
        MHD_resume_connection(connection_);
      }};
  served_->deadline = std::numeric_limits<double>::infinity();
  MHD_suspend_connection(connection_);
  if (work_.model.batcher->Submit(std::move(job))) return true;
  Refused(Refuse(Refusal::kTooMany, "the model is overloaded (try again later)"));
  MHD_resume_connection(connection_);
  return true;
}

MHD_Result Exchange::Send() {
  if (outcomes_.has_value() && !reply_.has_value()) {
    absl::StatusOr<std::string> body =
        outcomes_->ok() ? work_.format(**outcomes_) : outcomes_->status();
    if (!body.ok()) Refused(body.status());
    if (body.ok()) reply_ = Reply{200, *std::move(body), work_.type, ""};
  }
  const Reply& reply = *reply_;
  served_->deadline = SteadySeconds() + server_.options_.timeout;
  MHD_Response* const response = MHD_create_response_from_buffer(
      reply.body.size(), const_cast<char*>(reply.body.data()), MHD_RESPMEM_MUST_COPY);
  const auto add = [&](const char* name, const std::string& value) {
    MHD_add_response_header(response, name, value.c_str());
  };
  add(MHD_HTTP_HEADER_CONTENT_TYPE, reply.type);
  add("X-Content-Type-Options", "nosniff");
  if (reply.status == 405) add(MHD_HTTP_HEADER_ALLOW, MethodsOf(path_));
  if (reply.status == 401) add("WWW-Authenticate", "Basic realm=\"cloze\"");
  if (reply.status == 429 || reply.status == 503) add("Retry-After", "1");
  if (server_.draining_ || bytes_ > server_.context_.limits.body || reply.status == 400)
    add(MHD_HTTP_HEADER_CONNECTION, "close");
  if (!server_.options_.allow_origin.empty()) {
    add("Access-Control-Allow-Origin", server_.options_.allow_origin);
    add("Access-Control-Allow-Headers", "authorization, content-type");
    add("Access-Control-Allow-Methods", "GET, POST");
    add("Vary", "Origin");
  }
  const MHD_Result result = MHD_queue_response(connection_, reply.status, response);
  MHD_destroy_response(response);
  return result;
}

void Exchange::Log() const {
  const double seconds = SteadySeconds() - begin_;
  const char* const error = reply_.has_value() ? reply_->error : "Gone";
  server_.metrics_->Count(route_ == nullptr ? "other" : route_->path, error, seconds);
  if (server_.options_.quiet) return;
  const OrderedJson line = {{"time", Now()}, {"method", Quote(method_)}, {"path", Quote(path_)},
      {"status", reply_.has_value() ? reply_->status : 0}, {"error", error},
      {"model", work_.model.name}, {"bytes", bytes_},
      {"seconds", Decimal(static_cast<float>(seconds))}};
  std::fputs((ToJsonLine(line) + "\n").c_str(), stderr);
}

MHD_Result Exchange::OnRequest(void* server, MHD_Connection* connection, const char* path,
    const char* method, const char*, const char* data, size_t* size, void** state) try {
  auto* exchange = static_cast<Exchange*>(*state);
  if (exchange == nullptr) {
    exchange = new Exchange(*static_cast<Server*>(server), connection, path, method);
    *state = exchange;
    // Refused now, before a body that nobody waits to send or that is far too large.
    const bool waits = !Header(connection, MHD_HTTP_HEADER_EXPECT).empty();
    const bool far =
        ContentLength(connection) > kReadAnyway * exchange->server_.context_.limits.body;
    return exchange->reply_.has_value() && (waits || far) ? exchange->Send() : MHD_YES;
  }
  if (*size > 0) {
    exchange->AddBody({data, *size});
    const bool far = exchange->bytes_ > kReadAnyway * exchange->server_.context_.limits.body;
    *size = 0;
    return far ? MHD_NO : MHD_YES;
  }
  if (!exchange->begun_ && exchange->Begin()) return MHD_YES;
  return exchange->Send();
} catch (const std::exception&) {
  return MHD_NO;  // out of memory: closes the connection
}

void Exchange::OnCompleted(void*, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
  auto* const exchange = static_cast<Exchange*>(*state);
  if (exchange == nullptr) return;
  exchange->served_->deadline = SteadySeconds() + exchange->server_.options_.timeout;
  exchange->Log();
  --exchange->server_.open_requests_;
  delete exchange;
  *state = nullptr;
}

}  // namespace cloze
