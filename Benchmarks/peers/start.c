// Starts a program a number of times, one after the other, and prints for each its CPU time, the time until its end (both
// in microseconds) and its peak memory in KiB. Small, because the peak of a process includes the one that started it.
//
// Called as start RUNS EXPECTED_OUTPUT PROGRAM ARGUMENTS...

#include <spawn.h>
#include <sys/wait.h>

#include "contract.h"

extern char **environ;

static uint64_t microseconds(struct timeval time) { return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec; }

int main(int count, char **values) {
  if (count < 4) fail("usage: %s RUNS EXPECTED_OUTPUT PROGRAM ARGUMENTS...", values[0]);
  for (int runs = atoi(values[1]); runs > 0; runs--) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe2");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    uint64_t start = now().wall_us;
    pid_t process = 0;
    if (posix_spawn(&process, values[3], &actions, NULL, &values[3], environ) != 0) fail("%s does not start", values[3]);
    // Otherwise a program without output would leave this one waiting for it.
    close(ends[1]);
    int status = 0;
    struct rusage usage;
    if (wait4(process, &status, 0, &usage) != process) fail("wait4");
    uint64_t wall = now().wall_us - start;
    char output[64] = "";
    if (read(ends[0], output, sizeof output - 1) <= 0 || status != 0 || strcspn(output, "\n") != strlen(values[2]) ||
        strncmp(output, values[2], strlen(values[2])) != 0)
      fail("%s: status %d, output %s", values[3], status, output);
    printf("%llu %llu %ld\n", (unsigned long long)(microseconds(usage.ru_utime) + microseconds(usage.ru_stime)),
           (unsigned long long)wall, usage.ru_maxrss);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
  }
  return 0;
}
