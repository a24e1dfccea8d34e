// Common parts of all clients written in C: the workloads, the clocks and the line of JSON that ends a run.
//
// A client is called as PROGRAM WORKLOAD HOST PORT REQUESTS [CA_FILE]. The whole contract is in Benchmarks/README.md.

#ifndef BENCHMARK_CONTRACT_H
#define BENCHMARK_CONTRACT_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

// The lifetime of a connection.
typedef enum {
  kept,     // for the whole run
  full,     // for one request, after a full handshake if it is https
  resumed,  // for one request, after a handshake that resumes the session of an earlier connection
  idle,     // each makes one request and then stays open
} Lifetime;

// The protocol of a workload.
typedef enum {
  http,
  websocket,  // messages that the server sends back
  events,     // server-sent events of one response
} Protocol;

typedef struct {
  const char *name;
  const char *path;
  uint64_t body_bytes;
  int connections;  // at the same time with a request on its way
  int warms_up;
  int is_tls;
  Lifetime lifetime;
  int pipelines;  // whether these requests may be pipelined on a connection
  int into_file;  // whether the body goes into a file
  int is_default;  // whether the client accepts gzip, keeps cookies and collects the body in memory
  uint64_t upload_bytes;  // the length of the request's body
  int from_file;  // whether the request's body comes from the file UPLOAD_FILE
  Protocol protocol;
  int is_paced;  // whether requests begin at the rate of the variable RATE, and their latencies are measured
} Workload;

static const Workload workloads[] = {
    {"serial-tiny", "/tiny", 13, 1, 1, 0, kept},
    {"concurrent-tiny", "/tiny", 13, 64, 1, 0, kept},
    {"latency-tiny", "/tiny", 13, 64, 1, 0, kept, .is_paced = 1},
    {"concurrent-100k", "/100k", 100 << 10, 64, 1, 0, kept},
    {"download-1g", "/1g", UINT64_C(1) << 30, 1, 0, 0, kept},
    {"download-1g-file", "/1g", UINT64_C(1) << 30, 1, 0, 0, kept, 0, 1},
    {"pipelined-tiny", "/tiny", 13, 16, 1, 0, kept, 1},
    {"new-tiny", "/tiny", 13, 1, 1, 0, full},
    {"idle", "/tiny", 13, 1, 1, 0, idle},
    {"https-serial-tiny", "/tiny", 13, 1, 1, 1, kept},
    {"https-concurrent-tiny", "/tiny", 13, 64, 1, 1, kept},
    {"https-download-1g", "/1g", UINT64_C(1) << 30, 1, 0, 1, kept},
    {"https-new-full", "/tiny", 13, 1, 1, 1, full},
    {"https-new-full-bundle", "/tiny", 13, 1, 1, 1, full},
    {"https-new-resumed", "/tiny", 13, 1, 1, 1, resumed},
    {"https-idle", "/tiny", 13, 1, 1, 1, idle},
    {"api-json-serial", "/api/no-store/items.json", 2300, 1, 1, .is_default = 1},
    {"api-json-concurrent", "/api/no-store/items.json", 2300, 64, 1, .is_default = 1},
    {"api-etag-serial", "/api/etag/items.json", 2300, 1, 1, .is_default = 1},
    {"api-etag-concurrent", "/api/etag/items.json", 2300, 64, 1, .is_default = 1},
    {"upload-json", "/upload/1024", 17, 1, 1, .is_default = 1, .upload_bytes = 1 << 10},
    {"upload-1g", "/upload/1073741824", 17, 1, 0, .is_default = 1, .upload_bytes = 1 << 30, .from_file = 1},
    {"https-upload-1g", "/upload/1073741824", 17, 1, 0, 1, .is_default = 1, .upload_bytes = 1 << 30, .from_file = 1},
    {"websocket-serial-tiny", "/echo", 32, 1, 1, .protocol = websocket},
    {"websocket-serial-64k", "/echo", 64 << 10, 1, 1, .protocol = websocket},
    {"websocket-concurrent-tiny", "/echo", 32, 64, 1, .protocol = websocket},
    {"events", "/events", 40, 1, 1, .protocol = events},
};

enum { connections_max = 64, pipeline_max = 16 };

__attribute__((noreturn, format(printf, 1, 2))) static inline void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}

// Opens a file without a name, as the target of bodies.
static inline int open_target(void) {
  const char *folder = getenv("TMPDIR");
  int file = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
  if (file < 0) fail("no file can be created in TMPDIR");
  return file;
}

// Called when the body is complete: checks its length and empties the file. To free its blocks takes as long as a
// quarter of a download; a client with a new file for each body pays the same at the end of each.
static inline void finish_target(int file, uint64_t bytes) {
  if ((uint64_t)lseek(file, 0, SEEK_END) != bytes) fail("the file is not as long as the body");
  if (ftruncate(file, 0) != 0 || lseek(file, 0, SEEK_SET) != 0) fail("the file cannot be emptied");
}

typedef struct {
  const Workload *workload;
  const char *host;
  int port;
  const char *ca_file;  // the certificates to trust; NULL without TLS
  uint64_t requests;
  uint64_t warm_up_requests;
} Arguments;

static inline void print_unsupported(void) { puts("{\"unsupported\":true}"); }

// Parses the arguments of a client of `protocol`.
static inline Arguments parse_arguments_for(Protocol protocol, int count, char **values) {
  if (count != 5 && count != 6) fail("usage: %s WORKLOAD HOST PORT REQUESTS [CA_FILE]", values[0]);
  Arguments result = {.host = values[2], .port = atoi(values[3]), .requests = strtoull(values[4], NULL, 10)};
  for (size_t index = 0; index < sizeof workloads / sizeof *workloads; index++)
    if (strcmp(workloads[index].name, values[1]) == 0) result.workload = &workloads[index];
  if (!result.workload || result.workload->protocol != protocol) {
    // compare knows the workloads; other ones are meant for other clients.
    print_unsupported();
    exit(0);
  }
  if (result.workload->is_tls != (count == 6)) fail("a CA file is for https workloads, and they need one");
  result.ca_file = result.workload->is_tls ? values[5] : NULL;
  if (result.port <= 0 || result.port > 65535) fail("bad port %s", values[3]);
  if (result.requests == 0) fail("bad number of requests %s", values[4]);
  // compare subtracts run lengths and so relies on this exact rule.
  if (result.workload->warms_up) result.warm_up_requests = result.requests / 10 < 1000 ? result.requests / 10 : 1000;
  return result;
}

static inline Arguments parse_arguments(int count, char **values) { return parse_arguments_for(http, count, values); }

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

static inline uint64_t kib_in(const char *path, const char *format) {
  unsigned long long result = 0;
  char line[256];
  FILE *file = fopen(path, "r");
  if (!file) fail("cannot open %s", path);
  while (fgets(line, sizeof line, file))
    if (sscanf(line, format, &result) == 1) break;
  fclose(file);
  return result;
}

// Reads the peak from VmHWM. ru_maxrss survives an exec, so it could be the peak of the parent process.
static inline uint64_t peak_rss_kib(void) { return kib_in("/proc/self/status", "VmHWM: %llu kB"); }

// Reads smaps_rollup. The counters of VmRSS may lag behind by dozens of pages for each thread.
static inline uint64_t resident_bytes(void) { return kib_in("/proc/self/smaps_rollup", "Rss: %llu kB") << 10; }

// The values read just before the measured requests.
typedef struct {
  Instant instant;
  uint64_t resident_bytes;
} Start;

static inline Start start_measuring(const Arguments *arguments) {
  Start start = {.resident_bytes = arguments->workload->lifetime == idle ? resident_bytes() : 0};
  start.instant = now();
  return start;
}

// Prints the result, just after the measured requests. `bytes` is the length of the bodies that they received. If the
// requests have bodies, the length of those is printed instead. `latencies` are those of a paced workload, sorted.
static inline void finish_measuring_latencies(const Arguments *arguments, Start start, uint64_t bytes,
                                              const uint64_t *latencies) {
  Instant end = now();
  if (arguments->workload->upload_bytes) bytes = arguments->requests * arguments->workload->upload_bytes;
  printf("{\"requests\":%llu,\"cpu_us\":%llu,\"wall_us\":%llu,\"bytes\":%llu,\"peak_rss_kib\":%llu",
         (unsigned long long)arguments->requests, (unsigned long long)(end.cpu_us - start.instant.cpu_us),
         (unsigned long long)(end.wall_us - start.instant.wall_us), (unsigned long long)bytes,
         (unsigned long long)peak_rss_kib());
  if (arguments->workload->lifetime == idle) {
    uint64_t resident = resident_bytes();
    uint64_t grown = resident > start.resident_bytes ? resident - start.resident_bytes : 0;
    printf(",\"idle_bytes_per_connection\":%llu", (unsigned long long)(grown / arguments->requests));
  }
  if (latencies) {
    static const char *const names[] = {"p50", "p99", "p999"};
    static const uint64_t thousandths[] = {500, 990, 999};
    for (int index = 0; index < 3; index++)
      printf(",\"%s_us\":%llu", names[index],
             (unsigned long long)latencies[(arguments->requests * thousandths[index] - 1) / 1000]);
  }
  puts("}");
}

static inline void finish_measuring(const Arguments *arguments, Start start, uint64_t bytes) {
  finish_measuring_latencies(arguments, start, bytes, NULL);
}

#endif
