// The floor with TLS: the cost of the kernel and OpenSSL alone. One fixed request, epoll, and no parser.
//
// OpenSSL reads and writes the descriptor itself, with no code of this program in between. One SSL_CTX serves all
// connections, so the certificates to trust are read once. As in raw.c, the first response gives the length of all.
//
// A record costs two reads, one for its head and one for the rest. OpenSSL's read-ahead saves calls, but no time here.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"

typedef struct {
  int socket;
  SSL *tls;
  int has_sent;
  uint64_t received;  // bytes of the current response
} Connection;

static const Arguments *arguments;
static const Workload *workload;
static SSL_CTX *context;
static SSL_SESSION *session;  // the newest ticket, in the workload that resumes
static struct sockaddr_in server;
static char request[256];
static int request_bytes;
static uint64_t response_bytes;  // head and body; 0 until the first response has been seen
static uint64_t body_bytes_total;
static int poller;
static Connection connections[connections_max];
static char buffer[256 << 10];

__attribute__((noreturn)) static void fail_tls(const char *what) {
  char reason[256] = "the connection has ended";
  if (ERR_peek_error() != 0) ERR_error_string_n(ERR_peek_error(), reason, sizeof reason);
  fail("%s: %s", what, reason);
}

static int keep_session(SSL *tls, SSL_SESSION *new_session) {
  (void)tls;
  if (session) SSL_SESSION_free(session);
  session = new_session;
  return 1;  // takes over the reference
}

static void prepare_tls(void) {
  context = SSL_CTX_new(TLS_client_method());
  if (!context) fail_tls("SSL_CTX_new");
  if (SSL_CTX_load_verify_locations(context, arguments->ca_file, NULL) != 1) fail_tls("SSL_CTX_load_verify_locations");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  // Every connection inherits this address, which its certificate has to be for.
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_CTX_get0_param(context), arguments->host) != 1) fail_tls("set1_ip_asc");
  if (workload->lifetime == resumed) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keep_session);
  }
  // An idle connection frees its 16 KiB buffers. A busy one would only allocate them again.
  if (workload->lifetime == idle) SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
}

static void open_connection(Connection *connection) {
  connection->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (connection->socket < 0) fail("socket: %s", strerror(errno));
  // On loopback the connection exists when connect returns, whatever the result. The first write reports a failure.
  if (connect(connection->socket, (struct sockaddr *)&server, sizeof server) != 0 && errno != EINPROGRESS)
    fail("connect: %s", strerror(errno));
  int yes = 1;
  setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  struct epoll_event interest = {.events = EPOLLIN, .data.ptr = connection};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, connection->socket, &interest) != 0) fail("epoll_ctl: %s", strerror(errno));
  connection->tls = SSL_new(context);
  if (!connection->tls || SSL_set_fd(connection->tls, connection->socket) != 1) fail_tls("SSL_new");
  if (session && SSL_set_session(connection->tls, session) != 1) fail_tls("SSL_set_session");
  SSL_set_connect_state(connection->tls);
}

static void close_connection(Connection *connection) {
  // Sends close_notify. Without it OpenSSL would also mark the session as not resumable.
  SSL_shutdown(connection->tls);
  SSL_free(connection->tls);
  close(connection->socket);
}

static void check_handshake(const Connection *connection) {
  if (SSL_get_verify_result(connection->tls) != X509_V_OK) fail("the certificate is not trusted");
  // The first connection of a run has nothing to resume.
  int expected = workload->lifetime == resumed && session != NULL;
  if (workload->lifetime != kept && workload->lifetime != idle && SSL_session_reused(connection->tls) != expected)
    fail(expected ? "the session was not resumed" : "the session was resumed");
}

// Whether the operation has to be repeated once the peer has sent more.
static int has_to_wait(const Connection *connection, int result, const char *what) {
  switch (SSL_get_error(connection->tls, result)) {
    case SSL_ERROR_WANT_READ:
      return 1;
    case SSL_ERROR_WANT_WRITE:
      // Happens only if connecting takes time, which it does not on loopback: all output here fits into a socket
      // buffer.
      poll(&(struct pollfd){.fd = connection->socket, .events = POLLOUT}, 1, -1);
      return 0;
    case SSL_ERROR_SYSCALL:
      if (ERR_peek_error() == 0 && errno != 0) fail("%s: %s", what, strerror(errno));
      __attribute__((fallthrough));
    default:
      fail_tls(what);
  }
}

// Sends the request. On a new connection the handshake comes first, as far as the peer has done its part.
static void send_request(Connection *connection) {
  int is_new = !SSL_is_init_finished(connection->tls);
  int result;
  ERR_clear_error();
  while ((result = SSL_write(connection->tls, request, request_bytes)) <= 0)
    if (has_to_wait(connection, result, "SSL_write")) return;
  if (is_new) check_handshake(connection);
  connection->has_sent = 1;
  connection->received = 0;
}

// Computes the length of the response from its head, which nginx puts into one TLS record.
static uint64_t learn_response_bytes(size_t count) {
  char *end = memmem(buffer, count, "\r\n\r\n", 4);
  char *field = memmem(buffer, count, "\r\nContent-Length: ", 18);
  if (!end || !field || field > end) fail("the first response has no complete head with a Content-Length");
  uint64_t length = strtoull(field + 18, NULL, 10);
  if (length != workload->body_bytes) fail("Content-Length is %llu", (unsigned long long)length);
  return (uint64_t)(end + 4 - buffer) + length;
}

// Receives bytes. Returns whether the response is complete.
static int receive(Connection *connection) {
  ERR_clear_error();
  for (;;) {
    int count = SSL_read(connection->tls, buffer, sizeof buffer);
    if (count <= 0) {
      if (has_to_wait(connection, count, "SSL_read")) return 0;
      continue;
    }
    if (connection->received == 0) {
      if (count < 13 || memcmp(buffer, "HTTP/1.1 200 ", 13) != 0) fail("the response is not a 200");
      if (response_bytes == 0) response_bytes = learn_response_bytes((size_t)count);
    }
    connection->received += (uint64_t)count;
    if (connection->received > response_bytes) fail("the response is longer than the first one");
    if (connection->received == response_bytes) return 1;
  }
}

// Starts the next request: over the same connection, or over a new one.
static void start(Connection *connection) {
  connection->has_sent = 0;
  if (!connection->tls) open_connection(connection);
  send_request(connection);
}

static void finish(Connection *connection) {
  body_bytes_total += workload->body_bytes;
  if (workload->lifetime == kept) return;
  // An idle connection stays open, and no reference to it is kept.
  if (workload->lifetime != idle) close_connection(connection);
  connection->tls = NULL;
}

static void run(uint64_t requests) {
  uint64_t unsent = requests, unfinished = requests;
  for (int index = 0; index < workload->connections && unsent > 0; index++, unsent--) start(&connections[index]);
  while (unfinished > 0) {
    struct epoll_event events[connections_max];
    int count = epoll_wait(poller, events, connections_max, -1);
    if (count < 0 && errno != EINTR) fail("epoll_wait: %s", strerror(errno));
    for (int index = 0; index < count; index++) {
      Connection *connection = events[index].data.ptr;
      if (!connection->has_sent) send_request(connection);
      // After the request the peer has to answer first. At most tickets might already be there.
      else if (receive(connection)) {
        finish(connection);
        unfinished--;
        if (unsent > 0) {
          unsent--;
          start(connection);
        }
      }
    }
  }
}

int main(int argument_count, char **argument_values) {
  Arguments parsed = parse_arguments(argument_count, argument_values);
  arguments = &parsed;
  workload = parsed.workload;
  if (!workload->is_tls) {
    print_unsupported();
    return 0;
  }
  server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)parsed.port)};
  if (inet_pton(AF_INET, parsed.host, &server.sin_addr) != 1) fail("not an IPv4 address: %s", parsed.host);
  request_bytes = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s:%d\r\n\r\n", workload->path,
                           parsed.host, parsed.port);
  poller = epoll_create1(EPOLL_CLOEXEC);
  if (poller < 0) fail("epoll_create1: %s", strerror(errno));
  prepare_tls();

  run(parsed.warm_up_requests);
  body_bytes_total = 0;
  Start begin = start_measuring(&parsed);
  run(parsed.requests);
  finish_measuring(&parsed, begin, body_bytes_total);
  return 0;
}
