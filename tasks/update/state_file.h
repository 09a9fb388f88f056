// optimizer.safetensors of a checkpoint: moments "m.NAME" and "v.NAME" of every trainable
// parameter; with optimizer.ema_decay its average "ema.NAME", and with distributed.local_steps the
// outer momentum "outer.NAME". Its format does not depend on the number of ranks.
#ifndef CLOZE_TASKS_UPDATE_STATE_FILE_H_
#define CLOZE_TASKS_UPDATE_STATE_FILE_H_

#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/comm/ranks.h"
#include "tasks/update/sharded_params.h"

namespace cloze {

class StateFile {
 public:
  // `arrays`: all state of the trainable parameters of `params`. The references must outlive this.
  StateFile(const ParamStore& params, std::vector<StateArray> arrays, Ranks* ranks)
      : params_(params), arrays_(std::move(arrays)), ranks_(*ranks) {}

  // Creates the file; only for rank 0, to which the others send their shards in FinishWrite.
  absl::Status Write(const std::string& path);
  // Sends the shards to rank 0. Every rank must call it for every save, also if Write failed or was
  // not called on rank 0.
  void FinishWrite();
  // Reads the shard of this rank. Errors of SafetensorsReader.
  absl::Status Read(const std::string& path);

 private:
  // A slice of a tensor.
  struct Item {
    std::string tensor;
    ParamSlice slice;
    int owner;               // rank that sends it to rank 0
    absl::Span<float> data;  // empty if this rank does not have it
  };
  // Returns the slices of all tensors, in the order of the file.
  std::vector<Item> Items() const;
  // Sends the next slice from its owner to rank 0. Returns it on rank 0.
  absl::Span<const float> Next();

  const ParamStore& params_;
  std::vector<StateArray> arrays_;
  Ranks& ranks_;
  std::vector<Item> items_;  // of the file that is written
  size_t next_ = 0;
  std::vector<float> received_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_UPDATE_STATE_FILE_H_
