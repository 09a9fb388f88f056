#include "tasks/update/state_file.h"

#include "core/tensor/safetensors.h"

namespace cloze {

std::vector<StateFile::Item> StateFile::Items() const {
  std::vector<Item> items;
  const std::vector<ParamSlice> slices = SlicesOf(params_);
  for (auto first = slices.begin(), end = first; first != slices.end(); first = end) {
    while (end != slices.end() && end->param == first->param) ++end;
    for (const StateArray& array : arrays_) {
      const int ranks = array.ranks->size();
      const Shard shard(array.ranks->rank(), ranks, params_.grads().size());
      for (auto slice = first; slice != end; ++slice) {
        items.push_back({array.prefix + params_.param(slice->param).name, *slice,
            OwnerOf(slice->grad, ranks), {}});
        if (shard.Has(slice->grad))
          items.back().data = array.data.subspan(shard.OffsetOf(slice->grad), slice->n);
      }
    }
  }
  return items;
}

absl::Status StateFile::Write(const std::string& path) {
  items_ = Items();
  std::vector<TensorData> tensors;
  for (const Item& item : items_) {
    const Param& p = params_.param(item.slice.param);
    if (item.slice.value == p.offset)
      tensors.push_back(
          {.name = item.tensor, .shape = {p.rows, p.cols}, .next = [this] { return Next(); }});
  }
  return WriteSafetensors(path, tensors);
}

absl::Span<const float> StateFile::Next() {
  const Item& item = items_[next_++];
  const int owner = item.owner;
  const int64_t n = item.slice.n;
  if (ranks_.size() == 1) return item.data;
  std::vector<Ranks::Message> send, receive;
  if (owner != 0 && owner == ranks_.rank()) send.push_back(MessageOf(0, item.data.data(), n));
  if (owner != 0 && ranks_.first()) {
    received_.resize(kSliceFloats);
    receive.push_back(MessageOf(owner, received_.data(), n));
  }
  ranks_.Exchange(send, receive);
  return receive.empty() ? item.data : absl::MakeSpan(received_).first(n);
}

void StateFile::FinishWrite() {
  if (items_.empty()) items_ = Items();
  while (next_ < items_.size()) Next();
  items_.clear();
  next_ = 0;
}

absl::Status StateFile::Read(const std::string& path) {
  ASSIGN_OR_RETURN(const SafetensorsReader reader, SafetensorsReader::Open(path));
  for (const Item& item : Items()) {
    const Param& p = params_.param(item.slice.param);
    if (item.data.empty()) continue;
    RETURN_IF_ERROR(reader.Need(item.tensor, p.size()).status());
    RETURN_IF_ERROR(reader.ReadPartF32(item.tensor, item.slice.value - p.offset, item.data));
  }
  return absl::OkStatus();
}

}  // namespace cloze
