/* A disk of four times the latency: each fsync and fdatasync waits three times as long again as it took.
 *
 *     cc -shared -fPIC -o /tmp/slow_fsync.so tests/support/slow_fsync.c -ldl
 *     LD_PRELOAD=/tmp/slow_fsync.so tests/run
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

static int slowly(const char *name, int file) {
  struct timespec begun, ended;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  int result = ((int (*)(int))dlsym(RTLD_NEXT, name))(file);
  clock_gettime(CLOCK_MONOTONIC, &ended);
  long long took = (ended.tv_sec - begun.tv_sec) * 1000000000LL + ended.tv_nsec - begun.tv_nsec;
  struct timespec rest = {3 * took / 1000000000, 3 * took % 1000000000};
  nanosleep(&rest, NULL);
  return result;
}

int fsync(int file) { return slowly("fsync", file); }
int fdatasync(int file) { return slowly("fdatasync", file); }
