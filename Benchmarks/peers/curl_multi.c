// libcurl through its multi interface, with curl_multi_poll: one handle for each connection, default buffers.

#include <curl/curl.h>

#include "contract.h"

typedef struct {
  CURL *easy;
  uint64_t received;
} Transfer;

static CURLM *multi;
static Transfer transfers[connections_max];

static size_t discard(char *data, size_t size, size_t count, void *context) {
  (void)data;
  ((Transfer *)context)->received += size * count;
  return size * count;
}

static void check(CURLMcode code, const char *what) {
  if (code != CURLM_OK) fail("%s: %s", what, curl_multi_strerror(code));
}

static void start_transfer(Transfer *transfer) {
  transfer->received = 0;
  check(curl_multi_add_handle(multi, transfer->easy), "curl_multi_add_handle");
}

static void verify(const Transfer *transfer, const Workload *workload, CURLcode code) {
  if (code != CURLE_OK) fail("transfer: %s", curl_easy_strerror(code));
  long status = 0;
  curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) fail("the status is %ld", status);
  if (transfer->received != workload->body_bytes)
    fail("the body has %llu bytes", (unsigned long long)transfer->received);
}

static uint64_t run(const Workload *workload, uint64_t requests) {
  uint64_t unsent = requests, unfinished = requests, total = 0;
  for (int index = 0; index < workload->connections && unsent > 0; index++, unsent--) start_transfer(&transfers[index]);
  while (unfinished > 0) {
    int running = 0, remaining = 0, restarted = 0;
    check(curl_multi_perform(multi, &running), "curl_multi_perform");
    for (CURLMsg *message; (message = curl_multi_info_read(multi, &remaining));) {
      if (message->msg != CURLMSG_DONE) continue;
      // The message belongs to libcurl and dies with curl_multi_remove_handle: everything is read from it first.
      CURLcode code = message->data.result;
      Transfer *transfer = NULL;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
      verify(transfer, workload, code);
      check(curl_multi_remove_handle(multi, transfer->easy), "curl_multi_remove_handle");
      total += transfer->received;
      unfinished--;
      if (unsent > 0) {
        unsent--;
        restarted = 1;
        start_transfer(transfer);
      }
    }
    // A restarted transfer has its request still to send: polling first would be a wasted system call.
    if (unfinished > 0 && !restarted) check(curl_multi_poll(multi, NULL, 0, 1000, NULL), "curl_multi_poll");
  }
  return total;
}

int main(int argument_count, char **argument_values) {
  Arguments arguments = parse_arguments(argument_count, argument_values);
  char url[256];
  snprintf(url, sizeof url, "http://%s:%d%s", arguments.host, arguments.port, arguments.workload->path);
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) fail("curl_global_init failed");
  multi = curl_multi_init();
  if (!multi) fail("curl_multi_init failed");
  for (int index = 0; index < arguments.workload->connections; index++) {
    CURL *easy = curl_easy_init();
    if (!easy) fail("curl_easy_init failed");
    transfers[index].easy = easy;
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfers[index]);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfers[index]);
  }

  run(arguments.workload, arguments.warm_up_requests);
  Instant start = now();
  uint64_t bytes = run(arguments.workload, arguments.requests);
  Instant end = now();
  print_result(arguments.requests, bytes, start, end);

  for (int index = 0; index < arguments.workload->connections; index++) curl_easy_cleanup(transfers[index].easy);
  curl_multi_cleanup(multi);
  curl_global_cleanup();
  return 0;
}
