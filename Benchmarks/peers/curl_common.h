// Common parts of the libcurl clients: a handle with the options of a workload, and the check of the response.

#ifndef BENCHMARK_CURL_COMMON_H
#define BENCHMARK_CURL_COMMON_H

#include <curl/curl.h>
#include <openssl/ssl.h>

#include "contract.h"

typedef struct {
  CURL *easy;
  const Workload *workload;
  uint64_t received;
  int session_was_reused;
  int file;  // the target of the body, or -1
  int collects;
  char *body;  // the body received so far, if it is collected
  FILE *source;  // the body to send, if it is a file
} Transfer;

static inline size_t receive_body(char *data, size_t size, size_t count, void *context) {
  Transfer *transfer = context;
  if (transfer->file >= 0 && write(transfer->file, data, size * count) != (ssize_t)(size * count)) fail("write");
  // The TLS session is accessible only while the transfer runs.
  if (transfer->received == 0 && transfer->workload->is_tls) {
    struct curl_tlssessioninfo *info = NULL;
    curl_easy_getinfo(transfer->easy, CURLINFO_TLS_SSL_PTR, &info);
    if (!info || info->backend != CURLSSLBACKEND_OPENSSL) fail("libcurl does not use OpenSSL");
    transfer->session_was_reused = SSL_session_reused(info->internals);
  }
  if (transfer->collects) {
    // Like getinmemory.c, libcurl's own example.
    transfer->body = realloc(transfer->body, transfer->received + size * count + 1);
    if (!transfer->body) fail("no memory");
    memcpy(transfer->body + transfer->received, data, size * count);
  }
  transfer->received += size * count;
  return size * count;
}

// A JSON object of 1 KiB.
static inline const char *upload_json(void) {
  static const char begin[] = "{\"name\":\"Item\",\"note\":\"", end[] = "\"}";
  static char document[1 << 10];
  memset(document, '.', sizeof document);
  memcpy(document, begin, strlen(begin));
  memcpy(document + sizeof document - strlen(end), end, strlen(end));
  return document;
}

static inline void set_upload(Transfer *transfer) {
  CURL *easy = transfer->easy;
  if (transfer->workload->from_file) {
    const char *path = getenv("UPLOAD_FILE");
    transfer->source = path ? fopen(path, "rb") : NULL;
    if (!transfer->source) fail("UPLOAD_FILE cannot be opened");
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_READDATA, transfer->source);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)transfer->workload->upload_bytes);
  } else {
    // One list for the whole process: the handles only borrow it.
    static struct curl_slist *fields = NULL;
    if (!fields) fields = curl_slist_append(NULL, "Content-Type: application/json");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, upload_json());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)transfer->workload->upload_bytes);
  }
}

static inline void open_handle(Transfer *transfer, const Arguments *arguments) {
  char url[256];
  const Workload *workload = arguments->workload;
  CURL *easy = curl_easy_init();
  if (!easy) fail("curl_easy_init failed");
  *transfer = (Transfer){.easy = easy, .workload = workload, .file = workload->into_file ? open_target() : -1};
  snprintf(url, sizeof url, "%s://%s:%d%s", workload->is_tls ? "https" : "http", arguments->host, arguments->port,
           workload->path);
  curl_easy_setopt(easy, CURLOPT_URL, url);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
#ifdef COLLECTS_BODIES
  transfer->collects = 1;
#endif
  if (workload->is_default) {
    transfer->collects = 1;
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(easy, CURLOPT_COOKIEFILE, "");
  }
  if (workload->upload_bytes) set_upload(transfer);
  // Verification of the certificate and of its name is on by default.
  if (workload->is_tls) curl_easy_setopt(easy, CURLOPT_CAINFO, arguments->ca_file);
  if (workload->lifetime != kept) curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
  if (workload->lifetime == full || workload->lifetime == resumed) curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
}

// Since 7.87 libcurl caches the certificates of CURLOPT_CAINFO in the handle, but only if there is no certificate
// folder as well. Debian's libcurl has one by default; this removes it.
static inline void let_trust_be_cached(const Transfer *transfer) {
  curl_easy_setopt(transfer->easy, CURLOPT_CAPATH, NULL);
}

static inline void prepare_transfer(Transfer *transfer) {
  transfer->received = 0;
  if (transfer->source) rewind(transfer->source);
}

static inline void check_transfer(Transfer *transfer, CURLcode code) {
  static int has_session = 0;  // whether there was a connection that another one could resume
  if (code != CURLE_OK) fail("transfer: %s", curl_easy_strerror(code));
  long status = 0;
  curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) fail("the status is %ld", status);
  const Workload *workload = transfer->workload;
  if (transfer->received != workload->body_bytes)
    fail("the body has %llu bytes", (unsigned long long)transfer->received);
  if (transfer->file >= 0) finish_target(transfer->file, workload->body_bytes);
  if (workload->lifetime == resumed && has_session && !transfer->session_was_reused)
    fail("the session was not resumed");
  if (workload->lifetime == full && transfer->session_was_reused) fail("the session was resumed");
  has_session = 1;
  free(transfer->body);
  transfer->body = NULL;
}

#endif
