// libcurl as programs use it for a single request: a new handle for each, with nothing carried over to the next.
//
// So the certificates to trust are read for every connection, and no session is resumed. Only for workloads with new
// connections.

#define _GNU_SOURCE
#include "curl_common.h"

static uint64_t run(const Arguments *arguments, uint64_t requests) {
  uint64_t total = 0;
  for (uint64_t index = 0; index < requests; index++) {
    Transfer transfer;
    open_handle(&transfer, arguments);
    check_transfer(&transfer, curl_easy_perform(transfer.easy));
    curl_easy_cleanup(transfer.easy);
    total += transfer.received;
  }
  return total;
}

int main(int argument_count, char **argument_values) {
  Arguments arguments = parse_arguments(argument_count, argument_values);
  if (arguments.workload->lifetime != full) {
    print_unsupported();
    return 0;
  }
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) fail("curl_global_init failed");

  run(&arguments, arguments.warm_up_requests);
  Start start = start_measuring(&arguments);
  uint64_t bytes = run(&arguments, arguments.requests);
  finish_measuring(&arguments, start, bytes);

  curl_global_cleanup();
  return 0;
}
