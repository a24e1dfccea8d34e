// Loads the URL that is its argument with libcurl, and prints the length of the body.

#include <curl/curl.h>
#include <stdio.h>

static size_t receive_body(char *data, size_t size, size_t count, void *context) {
  (void)data;
  *(size_t *)context += size * count;
  return size * count;
}

int main(int argument_count, char **argument_values) {
  if (argument_count != 2) return 2;
  size_t received = 0;
  curl_global_init(CURL_GLOBAL_DEFAULT);
  CURL *easy = curl_easy_init();
  curl_easy_setopt(easy, CURLOPT_URL, argument_values[1]);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &received);
  CURLcode code = curl_easy_perform(easy);
  if (code == CURLE_OK) printf("%zu\n", received);
  curl_easy_cleanup(easy);
  return code == CURLE_OK ? 0 : 1;
}
