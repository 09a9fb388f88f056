#include "encoder/onnx/runtime.h"

#ifdef CLOZE_ONNXRUNTIME
#include <dlfcn.h>

#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>
#endif

namespace cloze {

#ifdef CLOZE_ONNXRUNTIME

namespace {

// The library is opened here and not linked, because loading it takes longer than Cloze's start.
absl::Status LoadRuntime() {
  void* library = dlopen(CLOZE_ONNXRUNTIME, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error(Exit::kNoInput, "ONNX Runtime: ", dlerror(), " (install libonnxruntime)");
  using GetBase = const OrtApiBase*();
  auto* base = reinterpret_cast<GetBase*>(dlsym(library, "OrtGetApiBase"));
  const OrtApi* api = base == nullptr ? nullptr : base()->GetApi(ORT_API_VERSION);
  if (api == nullptr) {
    return Error(Exit::kNoInput, CLOZE_ONNXRUNTIME, ": has no API of version ", ORT_API_VERSION,
        " (build Cloze again)");
  }
  Ort::InitApi(api);
  return absl::OkStatus();
}

std::vector<OnnxOutput> Run(const std::string& file, const OnnxBatch& batch) {
  const Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "cloze");
  Ort::SessionOptions options;
  Ort::Session session(env, file.c_str(), options);
  const Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const std::vector<int64_t> shape = {batch.sequences, batch.tokens};
  std::vector<const char*> names;
  std::vector<Ort::Value> inputs;
  const auto add = [&](const char* name, const std::vector<int64_t>& values) {
    if (values.empty()) return;
    names.push_back(name);
    inputs.push_back(Ort::Value::CreateTensor<int64_t>(
        memory, const_cast<int64_t*>(values.data()), values.size(), shape.data(), shape.size()));
  };
  add("input_ids", batch.input_ids);
  add("attention_mask", batch.attention_mask);
  add("token_type_ids", batch.token_type_ids);
  std::vector<OnnxOutput> outputs(session.GetOutputCount());
  Ort::AllocatorWithDefaultOptions allocator;
  std::vector<const char*> wanted;
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].name = session.GetOutputNameAllocated(i, allocator).get();
    wanted.push_back(outputs[i].name.c_str());
  }
  const std::vector<Ort::Value> results = session.Run(
      Ort::RunOptions(), names.data(), inputs.data(), inputs.size(), wanted.data(), wanted.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto info = results[i].GetTensorTypeAndShapeInfo();
    const float* values = results[i].GetTensorData<float>();
    outputs[i].shape = info.GetShape();
    outputs[i].values.assign(values, values + info.GetElementCount());
  }
  return outputs;
}

}  // namespace

absl::StatusOr<std::vector<OnnxOutput>> RunOnnx(const std::string& file, const OnnxBatch& batch) {
  static const absl::Status loaded = LoadRuntime();
  RETURN_IF_ERROR(loaded);
  try {
    return Run(file, batch);
  } catch (const Ort::Exception& error) {
    return Error(Exit::kMismatch, QuotePath(file), ": ONNX Runtime: ", error.what());
  }
}

#else

absl::StatusOr<std::vector<OnnxOutput>> RunOnnx(const std::string&, const OnnxBatch&) {
  return Error(Exit::kNoInput,
      "ONNX Runtime: this program was built without its headers (install libonnxruntime-dev and "
      "build Cloze again)");
}

#endif

}  // namespace cloze
