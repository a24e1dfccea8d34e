// What every client written in C shares: the workloads, the clocks and the line of JSON that ends a run.
//
// A client is called as PROGRAM WORKLOAD HOST PORT REQUESTS. The whole contract is in Benchmarks/README.md.

#ifndef BENCHMARK_CONTRACT_H
#define BENCHMARK_CONTRACT_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

typedef struct {
  const char *name;
  const char *path;
  uint64_t body_bytes;
  int connections;
  int warms_up;
} Workload;

static const Workload workloads[] = {
    {"serial-tiny", "/tiny", 13, 1, 1},
    {"concurrent-tiny", "/tiny", 13, 64, 1},
    {"concurrent-100k", "/100k", 100 << 10, 64, 1},
    {"download-1g", "/1g", UINT64_C(1) << 30, 1, 0},
};

enum { connections_max = 64 };

__attribute__((noreturn, format(printf, 1, 2))) static inline void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}

typedef struct {
  const Workload *workload;
  const char *host;
  int port;
  uint64_t requests;
  uint64_t warm_up_requests;
} Arguments;

static inline Arguments parse_arguments(int count, char **values) {
  if (count != 5) fail("usage: %s WORKLOAD HOST PORT REQUESTS", values[0]);
  Arguments result = {.host = values[2], .port = atoi(values[3]), .requests = strtoull(values[4], NULL, 10)};
  for (size_t index = 0; index < sizeof workloads / sizeof *workloads; index++)
    if (strcmp(workloads[index].name, values[1]) == 0) result.workload = &workloads[index];
  if (!result.workload) fail("unknown workload %s", values[1]);
  if (result.port <= 0 || result.port > 65535) fail("bad port %s", values[3]);
  if (result.requests == 0) fail("bad number of requests %s", values[4]);
  // compare subtracts run lengths and so relies on this exact rule.
  if (result.workload->warms_up) result.warm_up_requests = result.requests / 10 < 1000 ? result.requests / 10 : 1000;
  return result;
}

typedef struct {
  uint64_t cpu_us;
  uint64_t wall_us;
} Instant;

static inline Instant now(void) {
  struct rusage usage;
  struct timespec clock;
  getrusage(RUSAGE_SELF, &usage);
  clock_gettime(CLOCK_MONOTONIC, &clock);
  return (Instant){
      .cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
      .wall_us = (uint64_t)clock.tv_sec * 1000000 + (uint64_t)clock.tv_nsec / 1000,
  };
}

// Not ru_maxrss: the kernel keeps that across exec, so it would also hold the size of whoever started this program.
static inline uint64_t peak_rss_kib(void) {
  unsigned long long result = 0;
  char line[256];
  FILE *status = fopen("/proc/self/status", "r");
  if (!status) fail("cannot open /proc/self/status");
  while (fgets(line, sizeof line, status))
    if (sscanf(line, "VmHWM: %llu kB", &result) == 1) break;
  fclose(status);
  return result;
}

static inline void print_result(uint64_t requests, uint64_t bytes, Instant start, Instant end) {
  printf("{\"requests\":%llu,\"cpu_us\":%llu,\"wall_us\":%llu,\"bytes\":%llu,\"peak_rss_kib\":%llu}\n",
         (unsigned long long)requests, (unsigned long long)(end.cpu_us - start.cpu_us),
         (unsigned long long)(end.wall_us - start.wall_us), (unsigned long long)bytes,
         (unsigned long long)peak_rss_kib());
}

#endif
