// The floor without TLS: the cost of the kernel alone. One fixed request, epoll, and no parser.
//
// The first response gives the length of all responses: a later response is complete after that many bytes. A response
// whose bytes arrive together costs exactly three system calls: send, epoll_wait, recv. With many connections one
// epoll_wait serves several of them. Pipelined requests are sent together, the next batch when all are answered.
//
// A body for a file takes the shortest way: from the socket into a pipe and from the pipe into the file, without a copy
// in this program.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"

typedef struct {
  int socket;
  uint64_t received;  // bytes of the current responses
  uint64_t expected;  // the number of responses
} Connection;

static const Workload *workload;
static struct sockaddr_in server;
static char request[pipeline_max * 256];
static size_t request_bytes;  // the length of one request
static uint64_t response_bytes;  // head and body; 0 until the first response has been seen
static uint64_t body_bytes_total;
static int poller;
static Connection connections[connections_max];
static char buffer[256 << 10];
static int target = -1;    // the file for the bodies
static int pipe_ends[2];   // reading end, writing end
enum { pipe_bytes = 1 << 20 };

static void open_connection(Connection *connection) {
  connection->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection->socket < 0) fail("socket: %s", strerror(errno));
  // On loopback connecting takes no time, so it may block. All later calls have MSG_DONTWAIT.
  if (connect(connection->socket, (struct sockaddr *)&server, sizeof server) != 0)
    fail("connect: %s", strerror(errno));
  int yes = 1;
  setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  struct epoll_event interest = {.events = EPOLLIN, .data.ptr = connection};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, connection->socket, &interest) != 0) fail("epoll_ctl: %s", strerror(errno));
}

static void send_requests(Connection *connection, uint64_t count) {
  connection->received = 0;
  connection->expected = count;
  // The requests are smaller than any socket buffer, and nothing else is queued, so the kernel takes all of them.
  ssize_t sent = send(connection->socket, request, count * request_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != (ssize_t)(count * request_bytes)) fail("send: %s", sent < 0 ? strerror(errno) : "short count");
}

// Computes the length of the response from its head, which loopback delivers in one piece.
static uint64_t learn_response_bytes(size_t count) {
  char *end = memmem(buffer, count, "\r\n\r\n", 4);
  char *field = memmem(buffer, count, "\r\nContent-Length: ", 18);
  if (!end || !field || field > end) fail("the first response has no complete head with a Content-Length");
  uint64_t length = strtoull(field + 18, NULL, 10);
  if (length != workload->body_bytes) fail("Content-Length is %llu", (unsigned long long)length);
  return (uint64_t)(end + 4 - buffer) + length;
}

static void open_file(void) {
  target = open_target();
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) fail("pipe: %s", strerror(errno));
  fcntl(pipe_ends[1], F_SETPIPE_SZ, pipe_bytes);
}

// Moves the available bytes of the body. Returns whether the body is complete.
static int move(Connection *connection) {
  uint64_t missing = response_bytes - connection->received;
  ssize_t count = splice(connection->socket, NULL, pipe_ends[1], NULL, missing < pipe_bytes ? missing : pipe_bytes,
                         SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (count == 0) fail("the server closed the connection");
  if (count < 0) {
    if (errno == EAGAIN || errno == EINTR) return 0;
    fail("splice: %s", strerror(errno));
  }
  connection->received += (uint64_t)count;
  while (count > 0) {
    ssize_t written = splice(pipe_ends[0], NULL, target, NULL, (size_t)count, SPLICE_F_MOVE);
    if (written <= 0) fail("splice into the file: %s", strerror(errno));
    count -= written;
  }
  if (connection->received < response_bytes) return 0;
  finish_target(target, workload->body_bytes);
  return 1;
}

// Writes the part of the body that has come with the head.
static void write_rest_of_head(ssize_t count) {
  char *body = (char *)memmem(buffer, (size_t)count, "\r\n\r\n", 4) + 4;
  size_t length = (size_t)(buffer + count - body);
  if (write(target, body, length) != (ssize_t)length) fail("write: %s", strerror(errno));
}

// Receives bytes. Returns whether all responses are complete.
static int receive(Connection *connection) {
  if (target >= 0 && connection->received > 0) return move(connection);
  ssize_t count = recv(connection->socket, buffer, sizeof buffer, MSG_DONTWAIT);
  if (count == 0) fail("the server closed the connection");
  if (count < 0) {
    if (errno == EAGAIN || errno == EINTR) return 0;  // a spurious wake-up: epoll will report it again
    fail("recv: %s", strerror(errno));
  }
  if (connection->received == 0) {
    if (count < 13 || memcmp(buffer, "HTTP/1.1 200 ", 13) != 0) fail("the response is not a 200");
    if (response_bytes == 0) response_bytes = learn_response_bytes((size_t)count);
    if (target >= 0) write_rest_of_head(count);
  }
  connection->received += (uint64_t)count;
  uint64_t total = connection->expected * response_bytes;
  if (connection->received > total) fail("the responses are longer than the first one");
  return connection->received == total;
}

// Returns the number of simultaneous connections.
static int connection_count(void) { return workload->pipelines ? 1 : workload->connections; }

static uint64_t smaller(uint64_t one, uint64_t other) { return one < other ? one : other; }

static void run(uint64_t requests) {
  uint64_t unsent = requests, unfinished = requests, depth = workload->pipelines ? (uint64_t)workload->connections : 1;
  for (int index = 0; index < connection_count() && unsent > 0; index++) {
    if (workload->lifetime != kept) open_connection(&connections[index]);
    // The first request is sent alone, because its response gives the length.
    uint64_t batch = response_bytes == 0 ? 1 : smaller(depth, unsent);
    send_requests(&connections[index], batch);
    unsent -= batch;
  }
  while (unfinished > 0) {
    struct epoll_event events[connections_max];
    int count = epoll_wait(poller, events, connections_max, -1);
    if (count < 0 && errno != EINTR) fail("epoll_wait: %s", strerror(errno));
    for (int index = 0; index < count; index++) {
      Connection *connection = events[index].data.ptr;
      if (!receive(connection)) continue;
      body_bytes_total += connection->expected * workload->body_bytes;
      unfinished -= connection->expected;
      if (workload->lifetime != kept) close(connection->socket);
      if (unsent == 0) continue;
      if (workload->lifetime != kept) open_connection(connection);
      uint64_t batch = smaller(depth, unsent);
      unsent -= batch;
      send_requests(connection, batch);
    }
  }
}

int main(int argument_count, char **argument_values) {
  Arguments arguments = parse_arguments(argument_count, argument_values);
  workload = arguments.workload;
  if (workload->is_tls || workload->lifetime == idle) {
    print_unsupported();
    return 0;
  }
  server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)arguments.port)};
  if (inet_pton(AF_INET, arguments.host, &server.sin_addr) != 1) fail("not an IPv4 address: %s", arguments.host);
  request_bytes = (size_t)snprintf(request, 256, "GET %s HTTP/1.1\r\nHost: %s:%d\r\n\r\n", workload->path,
                                   arguments.host, arguments.port);
  if (request_bytes >= 256) fail("the host name is too long");
  for (int index = 1; index < pipeline_max; index++) memcpy(request + index * request_bytes, request, request_bytes);
  poller = epoll_create1(EPOLL_CLOEXEC);
  if (poller < 0) fail("epoll_create1: %s", strerror(errno));
  if (workload->into_file) open_file();
  for (int index = 0; workload->lifetime == kept && index < connection_count(); index++)
    open_connection(&connections[index]);

  run(arguments.warm_up_requests);
  body_bytes_total = 0;
  Start start = start_measuring(&arguments);
  run(arguments.requests);
  finish_measuring(&arguments, start, body_bytes_total);
  return 0;
}
