// shutdown_fs MOUNT [drop|log]: cuts the power of a file system (ext4, XFS): from now on it writes
// nothing, as if the machine had stopped. drop: what its log holds in memory is lost too; log: that
// is written first.
#include <fcntl.h>
#include <linux/types.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  constexpr uint32_t kLog = 1, kDrop = 2;  // FS_IOC_SHUTDOWN's flags, the same in ext4 and XFS
  uint32_t how = argc > 2 && std::strcmp(argv[2], "log") == 0 ? kLog : kDrop;
  const int fd = argc > 1 ? ::open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0 || ::ioctl(fd, _IOR('X', 125, uint32_t), &how) != 0) {
    std::perror(argc > 1 ? argv[1] : "usage: shutdown_fs MOUNT [drop|log]");
    return 1;
  }
  return 0;
}
