/* Shifts the wall clock of one process by the milliseconds that stand in the file $CLOCK_SHIFT.
 * Loaded before the C library. The monotonic clock stays right. The first eight bytes of the file
 * are the shift, as this machine stores a number; the mapping makes each change visible at once. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *shift;

__attribute__((constructor)) static void map_shift(void) {
  const char *path = getenv("CLOCK_SHIFT");
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *mapped = mmap(0, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped != MAP_FAILED) shift = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  long status = syscall(SYS_clock_gettime, clock, now);
  if (status != 0 || !shift || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
    return (int)status;
  int64_t ns = now->tv_nsec + (*shift % 1000) * 1000000;
  now->tv_sec += *shift / 1000;
  if (ns < 0) ns += 1000000000, now->tv_sec -= 1;
  if (1000000000 <= ns) ns -= 1000000000, now->tv_sec += 1;
  now->tv_nsec = ns;
  return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec real;
  if (clock_gettime(CLOCK_REALTIME, &real) != 0) return -1;
  now->tv_sec = real.tv_sec;
  now->tv_usec = real.tv_nsec / 1000;
  return 0;
}
