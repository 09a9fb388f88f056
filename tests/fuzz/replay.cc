// The main program of a fuzz target where libFuzzer is not linked: runs the files of a folder, and
// what becomes of each when it is cut or a byte of it changes. The mutations are the same in every
// run. With --out-of-memory: runs each file again and again, and lets the first, the second ...
// allocation of memory fail, until none is left to fail.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "core/base/philox.h"
#include "core/base/threads.h"
#include "tests/fuzz/input.h"

namespace {

constexpr int kMutations = 40;  // of each seed
constexpr int64_t kExact =
    400;  // allocations that fail one by one; behind them every 50th of those so far
int64_t allocations_left = -1;  // until one fails; negative: none does

}  // namespace

void* operator new(size_t size) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  if (void* p = std::malloc(std::max<size_t>(size, 1))) return p;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  if (allocations_left >= 0 && allocations_left-- == 0) return nullptr;
  return std::malloc(std::max<size_t>(size, 1));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace {

void Run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

// Returns the number of inputs that were run.
int64_t RunMutations(const std::string& seed, uint64_t number) {
  const cloze::Philox random(number, cloze::Purpose::kInit);
  for (int i = 0; i < kMutations && !seed.empty(); ++i) {
    const cloze::Philox::Words r = random(i, 0, 0);
    std::string changed = seed;
    const size_t at = r[0] % seed.size();
    if (i % 4 == 0) changed.resize(at);
    if (i % 4 == 1) changed[at] = static_cast<char>(r[1]);
    if (i % 4 == 2) changed[at] = static_cast<char>(changed[at] ^ (1 << r[1] % 8));
    if (i % 4 == 3) changed.insert(at, seed, r[1] % seed.size(), r[2] % 64);
    Run(changed);
  }
  return kMutations;
}

// nlohmann's destructor allocates, and a HashMap that grows must not see an exception: both
// terminate the program with this code, as in `cloze`.
constexpr int kOutOfMemory = 77;

void RunOutOfMemory(const std::string& seed, int64_t* next) {
  std::set_terminate([] { ::_exit(kOutOfMemory); });
  for (bool failed = true; failed;) {
    allocations_left = *next;
    *next += 1 + std::max<int64_t>(*next - kExact, 0) / 50;
    try {
      Run(seed);
    } catch (const std::bad_alloc&) {
    }
    failed = allocations_left < 0;
    allocations_left = -1;
  }
}

// In processes of their own, since one may end so.
int64_t RunOutOfMemory(const std::string& seed) {
  auto* next = static_cast<int64_t*>(
      ::mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int status = kOutOfMemory << 8; status != 0;) {
    const pid_t child = ::fork();
    if (child == 0) {
      RunOutOfMemory(seed, next);
      ::_exit(0);
    }
    ::waitpid(child, &status, 0);
    const bool orderly =
        WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kOutOfMemory);
    if (orderly) continue;
    std::fprintf(stderr, "allocation before %lld failed: status %d\n",
        static_cast<long long>(*next), status);
    std::exit(1);
  }
  return *next;
}

}  // namespace

int main(int argc, char** argv) {
  const bool out_of_memory = argc > 1 && std::string(argv[1]) == "--out-of-memory";
  cloze::fuzz::memory_fails = out_of_memory;
  cloze::SetThreads(1);  // OpenMP's threads are not there after a fork
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[argc - 1]))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  int64_t runs = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    std::ifstream in(paths[i], std::ios::binary);
    const std::string seed(std::istreambuf_iterator<char>(in), {});
    Run(seed);
    if (out_of_memory) std::printf("%s\n", paths[i].filename().c_str()), std::fflush(stdout);
    runs += out_of_memory ? RunOutOfMemory(seed) : RunMutations(seed, i);
  }
  std::printf("%zu seeds, %lld runs\n", paths.size(), static_cast<long long>(runs));
  return paths.empty() ? 1 : 0;
}
