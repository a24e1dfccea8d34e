// libcurl through its multi interface, with curl_multi_poll: one handle for each connection, default buffers. Built
// with COLLECTS_BODIES, the client collects each body in memory, even in workloads that discard bodies.

#define _GNU_SOURCE
#include <sys/timerfd.h>

#include "curl_common.h"

static CURLM *multi;
static Transfer transfers[connections_max];

static void check(CURLMcode code, const char *what) {
  if (code != CURLM_OK) fail("%s: %s", what, curl_multi_strerror(code));
}

static uint64_t nanoseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void start_transfer(Transfer *transfer) {
  prepare_transfer(transfer);
  check(curl_multi_add_handle(multi, transfer->easy), "curl_multi_add_handle");
}

// Returns the next transfer that is finished, after checking it, or NULL.
static Transfer *next_finished(void) {
  int remaining = 0;
  for (CURLMsg *message; (message = curl_multi_info_read(multi, &remaining));) {
    if (message->msg != CURLMSG_DONE) continue;
    // The message belongs to libcurl and becomes invalid by curl_multi_remove_handle, so it is read first.
    CURLcode code = message->data.result;
    Transfer *transfer = NULL;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
    check_transfer(transfer, code);
    check(curl_multi_remove_handle(multi, transfer->easy), "curl_multi_remove_handle");
    return transfer;
  }
  return NULL;
}

static uint64_t run(const Workload *workload, uint64_t requests) {
  uint64_t unsent = requests, unfinished = requests, total = 0;
  for (int index = 0; index < workload->connections && unsent > 0; index++, unsent--) start_transfer(&transfers[index]);
  while (unfinished > 0) {
    int running = 0, restarted = 0;
    check(curl_multi_perform(multi, &running), "curl_multi_perform");
    for (Transfer *transfer; (transfer = next_finished());) {
      total += transfer->received;
      unfinished--;
      if (unsent > 0) {
        unsent--;
        restarted = 1;
        start_transfer(transfer);
      }
    }
    // A restarted transfer still has to send its request, so polling first would waste a system call.
    if (unfinished > 0 && !restarted) check(curl_multi_poll(multi, NULL, 0, 1000, NULL), "curl_multi_poll");
  }
  return total;
}

static int compare_numbers(const void *first, const void *second) {
  uint64_t a = *(const uint64_t *)first, b = *(const uint64_t *)second;
  return (a > b) - (a < b);
}

// Begins the requests at a fixed rate, and returns their sorted latencies in microseconds. Each counts from the time at
// which the request should begin. A timer of the system wakes curl_multi_poll, whose own timeout is exact to a
// millisecond.
static uint64_t *run_paced(uint64_t requests) {
  uint64_t *latencies = calloc(requests + 1, sizeof *latencies), due[connections_max] = {0};
  uint64_t rate = strtoull(getenv("RATE") ? getenv("RATE") : "0", NULL, 10);
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (!latencies || rate == 0 || timer < 0) fail("RATE is missing, or the system has no memory");
  Transfer *unused[connections_max];
  int unused_count = 0;
  while (unused_count < connections_max) unused[unused_count] = &transfers[unused_count], unused_count++;
  uint64_t start = nanoseconds(), next = 0, finished = 0;
  while (finished < requests) {
    uint64_t next_due = start + next * (1000000000 / rate);
    while (next < requests && unused_count > 0 && next_due <= nanoseconds()) {
      Transfer *transfer = unused[--unused_count];
      due[transfer - transfers] = next_due;
      start_transfer(transfer);
      next_due = start + ++next * (1000000000 / rate);
    }
    int running = 0, completed = 0;
    check(curl_multi_perform(multi, &running), "curl_multi_perform");
    for (Transfer *transfer; (transfer = next_finished());) {
      latencies[finished++] = (nanoseconds() - due[transfer - transfers]) / 1000;
      unused[unused_count++] = transfer;
      completed = 1;
    }
    if (completed || (next < requests && unused_count > 0 && next_due <= nanoseconds())) continue;
    struct itimerspec time = {.it_value = {(time_t)(next_due / 1000000000), (long)(next_due % 1000000000)}};
    struct curl_waitfd wake = {.fd = timer, .events = CURL_WAIT_POLLIN};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &time, NULL);
    int waits_for_next = next < requests && unused_count > 0;
    check(curl_multi_poll(multi, waits_for_next ? &wake : NULL, waits_for_next, 1000, NULL), "curl_multi_poll");
  }
  close(timer);
  qsort(latencies, requests, sizeof *latencies, compare_numbers);
  return latencies;
}

int main(int argument_count, char **argument_values) {
  Arguments arguments = parse_arguments(argument_count, argument_values);
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) fail("curl_global_init failed");
  multi = curl_multi_init();
  if (!multi) fail("curl_multi_init failed");
  for (int index = 0; index < arguments.workload->connections; index++) {
    open_handle(&transfers[index], &arguments);
    let_trust_be_cached(&transfers[index]);
  }
  // By default libcurl keeps four connections for each handle, and closes the oldest.
  if (arguments.workload->lifetime == idle)
    check(curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 100000L), "curl_multi_setopt");

  if (arguments.workload->is_paced) {
    free(run_paced(arguments.warm_up_requests));
    Start start = start_measuring(&arguments);
    uint64_t *latencies = run_paced(arguments.requests);
    finish_measuring_latencies(&arguments, start, arguments.requests * arguments.workload->body_bytes, latencies);
    return 0;
  }
  run(arguments.workload, arguments.warm_up_requests);
  Start start = start_measuring(&arguments);
  uint64_t bytes = run(arguments.workload, arguments.requests);
  finish_measuring(&arguments, start, bytes);

  for (int index = 0; index < arguments.workload->connections; index++) curl_easy_cleanup(transfers[index].easy);
  curl_multi_cleanup(multi);
  curl_global_cleanup();
  return 0;
}
