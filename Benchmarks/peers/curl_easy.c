// libcurl through its easy interface: one handle, one blocking transfer after the other, default buffer.
//
// The easy interface has no concurrency, so the concurrent workloads are reported as unsupported. One handle also
// serves the workloads with new connections, and carries over whatever it can: sessions, and the certificates to trust.
// curl_one_shot.c is the opposite.

#define _GNU_SOURCE
#include "curl_common.h"

static uint64_t run(Transfer *transfer, uint64_t requests) {
  uint64_t total = 0;
  for (uint64_t index = 0; index < requests; index++) {
    prepare_transfer(transfer);
    check_transfer(transfer, curl_easy_perform(transfer->easy));
    total += transfer->received;
  }
  return total;
}

int main(int argument_count, char **argument_values) {
  Arguments arguments = parse_arguments(argument_count, argument_values);
  if (arguments.workload->connections > 1) {
    print_unsupported();
    return 0;
  }
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) fail("curl_global_init failed");
  Transfer transfer;
  open_handle(&transfer, &arguments);
  let_trust_be_cached(&transfer);
  // By default the handle keeps five connections, and closes the oldest.
  if (arguments.workload->lifetime == idle) curl_easy_setopt(transfer.easy, CURLOPT_MAXCONNECTS, 100000L);

  run(&transfer, arguments.warm_up_requests);
  Start start = start_measuring(&arguments);
  uint64_t bytes = run(&transfer, arguments.requests);
  finish_measuring(&arguments, start, bytes);

  curl_easy_cleanup(transfer.easy);
  curl_global_cleanup();
  return 0;
}
