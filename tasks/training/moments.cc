#include "tasks/training/moments.h"

#include "core/tensor/safetensors.h"

namespace cloze {

std::vector<Moments::Part> Moments::Parts() const {
  std::vector<Part> parts;
  for (auto first = pieces_.begin(), end = first; first != pieces_.end(); first = end) {
    while (end != pieces_.end() && end->param == first->param) ++end;
    for (const StateArray& array : arrays_) {
      const int ranks = array.ranks->size();
      const Shard shard(array.ranks->rank(), ranks, params_.grads().size());
      for (auto piece = first; piece != end; ++piece) {
        parts.push_back({array.prefix + params_.param(piece->param).name, &*piece,
            OwnerOf(piece->grad, ranks), {}});
        if (shard.Has(piece->grad))
          parts.back().data = array.data.subspan(shard.Place(piece->grad), piece->n);
      }
    }
  }
  return parts;
}

absl::Status Moments::Write(const std::string& path) {
  parts_ = Parts();
  std::vector<TensorData> tensors;
  for (const Part& part : parts_) {
    const Param& p = params_.param(part.piece->param);
    if (part.piece->value == p.offset)
      tensors.push_back(
          {.name = part.name, .shape = {p.rows, p.cols}, .next = [this] { return Next(); }});
  }
  return WriteSafetensors(path, tensors);
}

absl::Span<const float> Moments::Next() {
  const Part& part = parts_[next_++];
  const int owner = part.owner;
  if (ranks_.size() == 1) return part.data;
  std::vector<Ranks::Message> send, receive;
  if (owner != 0 && owner == ranks_.rank())
    send.push_back(Ranks::MessageOf(0, part.data.data(), part.piece->n));
  if (owner != 0 && ranks_.first()) {
    received_.resize(kPiece);
    receive.push_back(Ranks::MessageOf(owner, received_.data(), part.piece->n));
  }
  ranks_.Exchange(send, receive);
  return receive.empty() ? part.data : absl::MakeSpan(received_).first(part.piece->n);
}

void Moments::FinishWrite() {
  if (parts_.empty()) parts_ = Parts();
  while (next_ < parts_.size()) Next();
  parts_.clear();
  next_ = 0;
}

absl::Status Moments::Read(const std::string& path) {
  ASSIGN_OR_RETURN(const SafetensorsReader reader, SafetensorsReader::Open(path));
  for (const Part& part : Parts()) {
    const Param& p = params_.param(part.piece->param);
    if (part.data.empty()) continue;
    RETURN_IF_ERROR(reader.Need(part.name, p.size()).status());
    RETURN_IF_ERROR(reader.ReadPartF32(part.name, part.piece->value - p.offset, part.data));
  }
  return absl::OkStatus();
}

}  // namespace cloze
