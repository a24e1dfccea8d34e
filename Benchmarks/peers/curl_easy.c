// libcurl through its easy interface: one handle, one blocking transfer after the other, default buffer.
//
// The easy interface has no concurrency of its own, so the concurrent workloads are reported as unsupported.

#include <curl/curl.h>

#include "contract.h"

static size_t discard(char *data, size_t size, size_t count, void *context) {
  (void)data;
  *(uint64_t *)context += size * count;
  return size * count;
}

static uint64_t run(CURL *easy, const Workload *workload, uint64_t requests) {
  uint64_t total = 0;
  for (uint64_t index = 0; index < requests; index++) {
    uint64_t received = 0;
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &received);
    CURLcode code = curl_easy_perform(easy);
    if (code != CURLE_OK) fail("curl_easy_perform: %s", curl_easy_strerror(code));
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) fail("the status is %ld", status);
    if (received != workload->body_bytes) fail("the body has %llu bytes", (unsigned long long)received);
    total += received;
  }
  return total;
}

int main(int argument_count, char **argument_values) {
  Arguments arguments = parse_arguments(argument_count, argument_values);
  if (arguments.workload->connections > 1) {
    puts("{\"unsupported\":true}");
    return 0;
  }
  char url[256];
  snprintf(url, sizeof url, "http://%s:%d%s", arguments.host, arguments.port, arguments.workload->path);
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) fail("curl_global_init failed");
  CURL *easy = curl_easy_init();
  if (!easy) fail("curl_easy_init failed");
  curl_easy_setopt(easy, CURLOPT_URL, url);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);

  run(easy, arguments.workload, arguments.warm_up_requests);
  Instant start = now();
  uint64_t bytes = run(easy, arguments.workload, arguments.requests);
  Instant end = now();
  print_result(arguments.requests, bytes, start, end);

  curl_easy_cleanup(easy);
  curl_global_cleanup();
  return 0;
}
