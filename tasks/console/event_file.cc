#include "tasks/console/event_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "proto/tensorboard.pb.h"

namespace cloze {
namespace {

using tensorboard::Event;

constexpr uint64_t kMaxBytes = 1 << 20;  // of an event
constexpr int kHeadBytes = 12, kTailBytes = 4;

// Returns the CRC32C (Castagnoli) of `bytes`, rotated and shifted as in TFRecord.
uint32_t MaskedCrc(absl::string_view bytes) {
  uint32_t crc = ~0u;
  for (const unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8;
}

std::string LittleEndian(uint64_t value, int bytes) {
  return std::string(reinterpret_cast<const char*>(&value), bytes);
}

// Returns the event at *offset and moves *offset behind it; nothing if no whole one is there.
std::optional<Event> NextEvent(const Fd& file, const std::string& path, int64_t* offset) {
  std::string head(kHeadBytes, '\0');
  if (!ReadAt(file, path, *offset, head.data(), kHeadBytes).ok()) return std::nullopt;
  uint64_t size = 0;
  std::memcpy(&size, head.data(), sizeof(size));
  if (size > kMaxBytes) return std::nullopt;
  std::string record(kHeadBytes + size + kTailBytes, '\0');
  if (!ReadAt(file, path, *offset, record.data(), record.size()).ok()) return std::nullopt;
  const std::string data = record.substr(kHeadBytes, size);
  Event event;
  if (record != EventRecord(data) || !event.ParseFromString(data)) return std::nullopt;
  *offset += record.size();
  return event;
}

Event NewEvent() {
  Event event;
  event.set_wall_time(
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  return event;
}

}  // namespace

std::string EventRecord(absl::string_view data) {
  const std::string length = LittleEndian(data.size(), 8);
  return absl::StrCat(
      length, LittleEndian(MaskedCrc(length), 4), data, LittleEndian(MaskedCrc(data), 4));
}

absl::StatusOr<EventFile> EventFile::Open(const std::string& path, int64_t step) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666));
  struct stat info;
  if (!file.ok() || ::fstat(file.get(), &info) != 0)
    return Errno(ExitOfCreate(errno), "cannot open", path);
  if (!S_ISREG(info.st_mode))
    return Error(Exit::kCannotCreate, QuotePath(path), ": not a regular file");
  EventFile events(std::move(file), path);
  int64_t end = 0;
  for (std::optional<Event> event;
       (event = NextEvent(events.file_, path, &end)) && event->step() <= step;)
    events.size_ = end;
  if (::ftruncate(events.file_.get(), events.size_) != 0)
    return Errno(Exit::kIo, "cannot cut", path);
  if (events.size_ > 0) return events;
  Event version = NewEvent();
  version.set_file_version("brain.Event:2");
  RETURN_IF_ERROR(events.Append(EventRecord(version.SerializeAsString())));
  return events;
}

absl::Status EventFile::Add(
    int64_t step, const std::vector<std::pair<std::string, double>>& scalars) {
  Event event = NewEvent();
  event.set_step(step);
  for (const auto& [tag, number] : scalars) {
    auto* value = event.mutable_summary()->add_value();
    value->set_tag(tag);
    value->set_simple_value(static_cast<float>(number));
  }
  return Append(EventRecord(event.SerializeAsString()));
}

absl::Status EventFile::Append(absl::string_view record) {
  const int64_t n = ::pwrite(file_.get(), record.data(), record.size(), size_);
  if (n == static_cast<int64_t>(record.size())) {
    size_ += n;
    return absl::OkStatus();
  }
  absl::Status status = n < 0 ? Errno(Exit::kIo, "cannot write", path_)
                              : Error(Exit::kIo, QuotePath(path_), ": no space left");
  [[maybe_unused]] const int cut = ::ftruncate(file_.get(), size_);
  return status;
}

}  // namespace cloze
