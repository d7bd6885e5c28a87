/* Simulates a full disk while the file $FULL_DISK/full exists: a write that would extend a file
 * below $FULL_DISK fails with ENOSPC, and a write within a file succeeds. The shim is loaded before
 * the C library, so it needs neither rights nor a disk to fill. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Whether the shim rejects that length. A negative end counts from the current position. */
static int is_full(int fd, off_t end) {
  const char *disk = getenv("FULL_DISK");
  char flag[PATH_MAX], link[64], path[PATH_MAX];
  if (!disk || snprintf(flag, sizeof flag, "%s/full", disk) >= (int)sizeof flag) return 0;
  if (access(flag, F_OK) != 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  struct stat now;
  if (strncmp(path, disk, strlen(disk)) != 0 || fstat(fd, &now) != 0) return 0;
  if (end < 0) {
    int appends = fcntl(fd, F_GETFL) & O_APPEND;
    end = (appends ? now.st_size : lseek(fd, 0, SEEK_CUR)) - end;
  }
  if (end <= now.st_size) return 0;
  errno = ENOSPC;
  return 1;
}

ssize_t write(int fd, const void *bytes, size_t count) {
  return is_full(fd, -(off_t)count) ? -1 : NEXT(write)(fd, bytes, count);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  off_t all = 0;
  for (int at = 0; at < count; at++) all += parts[at].iov_len;
  return is_full(fd, -all) ? -1 : NEXT(writev)(fd, parts, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
  return is_full(fd, at + count) ? -1 : NEXT(pwrite)(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
  return is_full(fd, at + count) ? -1 : NEXT(pwrite64)(fd, bytes, count, at);
}

ssize_t copy_file_range(int from, off64_t *at, int fd, off64_t *to, size_t count, unsigned flags) {
  if (is_full(fd, to ? *to + (off_t)count : -(off_t)count)) return -1;
  return NEXT(copy_file_range)(from, at, fd, to, count, flags);
}

int ftruncate(int fd, off_t length) {
  return is_full(fd, length) ? -1 : NEXT(ftruncate)(fd, length);
}

int ftruncate64(int fd, off64_t length) {
  return is_full(fd, length) ? -1 : NEXT(ftruncate64)(fd, length);
}

int posix_fallocate(int fd, off_t at, off_t length) {
  return is_full(fd, at + length) ? ENOSPC : NEXT(posix_fallocate)(fd, at, length);
}

int posix_fallocate64(int fd, off64_t at, off64_t length) {
  return is_full(fd, at + length) ? ENOSPC : NEXT(posix_fallocate64)(fd, at, length);
}
