// libcurl through its multi interface, with curl_multi_poll: one handle for each connection, default buffers. Built
// with COLLECTS_BODIES, the client collects each body in memory, even in workloads that discard bodies.

#define _GNU_SOURCE
#include "curl_common.h"

static CURLM *multi;
static Transfer transfers[connections_max];

static void check(CURLMcode code, const char *what) {
  if (code != CURLM_OK) fail("%s: %s", what, curl_multi_strerror(code));
}

static void start_transfer(Transfer *transfer) {
  prepare_transfer(transfer);
  check(curl_multi_add_handle(multi, transfer->easy), "curl_multi_add_handle");
}

static uint64_t run(const Workload *workload, uint64_t requests) {
  uint64_t unsent = requests, unfinished = requests, total = 0;
  for (int index = 0; index < workload->connections && unsent > 0; index++, unsent--) start_transfer(&transfers[index]);
  while (unfinished > 0) {
    int running = 0, remaining = 0, restarted = 0;
    check(curl_multi_perform(multi, &running), "curl_multi_perform");
    for (CURLMsg *message; (message = curl_multi_info_read(multi, &remaining));) {
      if (message->msg != CURLMSG_DONE) continue;
      // The message belongs to libcurl and becomes invalid by curl_multi_remove_handle, so it is read first.
      CURLcode code = message->data.result;
      Transfer *transfer = NULL;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
      check_transfer(transfer, code);
      check(curl_multi_remove_handle(multi, transfer->easy), "curl_multi_remove_handle");
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

  run(arguments.workload, arguments.warm_up_requests);
  Start start = start_measuring(&arguments);
  uint64_t bytes = run(arguments.workload, arguments.requests);
  finish_measuring(&arguments, start, bytes);

  for (int index = 0; index < arguments.workload->connections; index++) curl_easy_cleanup(transfers[index].easy);
  curl_multi_cleanup(multi);
  curl_global_cleanup();
  return 0;
}
