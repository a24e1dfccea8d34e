// The server of WebSockets and event streams, on one thread with epoll.
//
// Called as PROGRAM. The server listens on a port of 127.0.0.1 that the kernel chooses, and prints the port.
//
// GET /echo opens a WebSocket. The server declines all extensions and subprotocols. A frame is sent back when all of its
// bytes have arrived, unmasked in place, with one call. Pings get pongs, and a Close gets a Close.
//
// GET /events/N is answered with N events of 40 bytes, in pieces of 64,000 bytes, as one response of known length.

#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { input_bytes_max = 256 << 10, event_bytes = 40, block_bytes = 1600 * event_bytes, polled_max = 64 };

// From RFC 6455 1.3.
static const char handshake_guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
static const char event[] = "data: {\"price\":1234567,\"size\":1234567}\n\n";

typedef struct {
  int descriptor;
  int is_websocket;
  int is_closing;  // whether the connection ends when the output has been sent
  uint64_t events_left_bytes;
  // Received bytes that have not been processed: `begin` to `end` of `input`.
  size_t begin, end;
  // Output that the kernel has not taken. The bytes lie in `input` before `begin`, or are static.
  const unsigned char *output;
  size_t output_bytes;
  uint32_t interest;
  unsigned char input[input_bytes_max];
} Connection;

static int poller;
static char block[block_bytes];

__attribute__((noreturn)) static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void end_connection(Connection *connection) {
  close(connection->descriptor);
  free(connection);
}

// Sends what is left of the output. Returns 0 if the connection is over.
static int flush(Connection *connection) {
  while (connection->output_bytes > 0) {
    ssize_t sent =
        send(connection->descriptor, connection->output, connection->output_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    connection->output += sent;
    connection->output_bytes -= (size_t)sent;
  }
  return !connection->is_closing;
}

static int put(Connection *connection, const void *bytes, size_t count) {
  connection->output = bytes;
  connection->output_bytes = count;
  return flush(connection);
}

// Sends a piece of the events. Returns 0 if the connection is over.
static int send_events(Connection *connection) {
  size_t offset = (block_bytes - connection->events_left_bytes % block_bytes) % block_bytes;
  uint64_t count = block_bytes - offset;
  if (count > connection->events_left_bytes) count = connection->events_left_bytes;
  ssize_t sent = send(connection->descriptor, block + offset, count, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  connection->events_left_bytes -= (uint64_t)sent;
  return 1;
}

static void unmask(unsigned char *bytes, size_t count, const unsigned char *mask) {
  uint64_t wide;
  memcpy(&wide, mask, 4);
  memcpy((unsigned char *)&wide + 4, mask, 4);
  size_t index = 0;
  for (; index + 8 <= count; index += 8) {
    uint64_t word;
    memcpy(&word, bytes + index, 8);
    word ^= wide;
    memcpy(bytes + index, &word, 8);
  }
  for (; index < count; index++) bytes[index] ^= mask[index % 4];
}

// Processes one frame. Returns 1 if there was a complete one, 0 if more bytes are needed, and -1 if the connection is
// over.
static int serve_frame(Connection *connection) {
  unsigned char *frame = connection->input + connection->begin;
  size_t available = connection->end - connection->begin, head = 2;
  if (available < 2) return 0;
  uint64_t length = frame[1] & 0x7f;
  if (length == 126) head = 4;
  if (length == 127) head = 10;
  // Frames of clients are masked, and no extension has been agreed on.
  if (!(frame[1] & 0x80) || frame[0] & 0x70) return -1;
  if (available < head + 4) return 0;
  if (head == 4) length = (uint64_t)frame[2] << 8 | frame[3];
  if (head == 10) {
    memcpy(&length, frame + 2, 8);
    length = be64toh(length);
  }
  if (length > input_bytes_max - 14) return -1;
  if (available < head + 4 + length) return 0;
  unsigned char *payload = frame + head + 4;
  unmask(payload, length, frame + head);
  int opcode = frame[0] & 0x0f;
  if (opcode == 0x8) connection->is_closing = 1;
  connection->begin += head + 4 + length;
  if (opcode == 0xa) return 1;
  // The head of the answer has the length of this one without the mask, and goes right before the payload.
  memmove(frame + 4, frame, head);
  if (opcode == 0x9) frame[4] = (unsigned char)((frame[4] & 0xf0) | 0xa);
  frame[5] &= 0x7f;
  return put(connection, frame + 4, head + length) ? 1 : -1;
}

static int open_websocket(Connection *connection, const char *head) {
  const char *field = strcasestr(head, "\r\nsec-websocket-key:");
  static char answer[512];
  char key[64] = "";
  if (!field || sscanf(field + 20, " %24[A-Za-z0-9+/=]", key) != 1 || strlen(key) != 24) return 0;
  strcat(key, handshake_guid);
  unsigned char hash[SHA_DIGEST_LENGTH], accept[64];
  SHA1((const unsigned char *)key, strlen(key), hash);
  EVP_EncodeBlock(accept, hash, sizeof hash);
  int count = snprintf(answer, sizeof answer,
                       "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       "Sec-WebSocket-Accept: %s\r\n\r\n",
                       accept);
  connection->is_websocket = 1;
  return put(connection, answer, (size_t)count);
}

static int begin_events(Connection *connection, unsigned long long count) {
  static char answer[512];
  if (count == 0 || count > UINT64_MAX / event_bytes) return 0;
  int length = snprintf(answer, sizeof answer,
                        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                        "Content-Length: %llu\r\n\r\n",
                        count * event_bytes);
  connection->events_left_bytes = count * event_bytes;
  return put(connection, answer, (size_t)length);
}

// Processes one request, as `serve_frame` does one frame.
static int serve_request(Connection *connection) {
  char *head = (char *)connection->input + connection->begin;
  char *end = memmem(head, connection->end - connection->begin, "\r\n\r\n", 4);
  if (!end) return 0;
  *end = 0;
  connection->begin += (size_t)(end + 4 - head);
  unsigned long long count = 0;
  int is_open = 0;
  if (strncmp(head, "GET /echo ", 10) == 0) is_open = open_websocket(connection, head);
  if (sscanf(head, "GET /events/%llu ", &count) == 1) is_open = begin_events(connection, count);
  return is_open ? 1 : -1;
}

static int is_busy(const Connection *connection) {
  return connection->output_bytes > 0 || connection->events_left_bytes > 0;
}

// Receives and processes bytes. Returns 0 if the connection is over.
static int receive(Connection *connection) {
  ssize_t count = recv(connection->descriptor, connection->input + connection->end,
                       input_bytes_max - connection->end, MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return 0;
  connection->end += (size_t)count;
  return 1;
}

// Processes what has been received, up to output that the kernel does not take. Returns 0 if the connection is over.
static int process(Connection *connection) {
  while (!is_busy(connection)) {
    int result = connection->is_websocket ? serve_frame(connection) : serve_request(connection);
    if (result < 0) return 0;
    if (result == 0) {
      // What is left goes to the beginning, so that there is room for the largest frame.
      size_t left = connection->end - connection->begin;
      if (connection->begin > 0) memmove(connection->input, connection->input + connection->begin, left);
      connection->begin = 0;
      connection->end = left;
      return left < input_bytes_max;
    }
  }
  return 1;
}

// Handles the readiness of a connection. Returns 0 if the connection is over.
static int handle(Connection *connection) {
  if (connection->output_bytes > 0) {
    if (!flush(connection)) return 0;
  } else if (connection->events_left_bytes > 0) {
    if (!send_events(connection)) return 0;
  } else if (!receive(connection)) {
    return 0;
  }
  if (!process(connection)) return 0;
  uint32_t interest = is_busy(connection) ? EPOLLOUT : EPOLLIN;
  if (interest != connection->interest) {
    struct epoll_event change = {.events = interest, .data.ptr = connection};
    if (epoll_ctl(poller, EPOLL_CTL_MOD, connection->descriptor, &change) != 0) fail("epoll_ctl");
    connection->interest = interest;
  }
  return 1;
}

static void accept_connection(int listener) {
  int descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (descriptor < 0) return;
  int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  Connection *connection = calloc(1, sizeof *connection);
  if (!connection) fail("calloc");
  connection->descriptor = descriptor;
  connection->interest = EPOLLIN;
  struct epoll_event change = {.events = EPOLLIN, .data.ptr = connection};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &change) != 0) fail("epoll_ctl");
}

int main(void) {
  _Static_assert(sizeof event == event_bytes + 1, "an event has 40 bytes");
  for (size_t offset = 0; offset < block_bytes; offset += event_bytes) memcpy(block + offset, event, event_bytes);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 128) != 0 ||
      getsockname(listener, (struct sockaddr *)&address, &length) != 0)
    fail("listen");
  poller = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event change = {.events = EPOLLIN, .data.ptr = NULL};
  if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &change) != 0) fail("epoll");
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  for (;;) {
    struct epoll_event polled[polled_max];
    int count = epoll_wait(poller, polled, polled_max, -1);
    for (int index = 0; index < count; index++) {
      Connection *connection = polled[index].data.ptr;
      if (!connection) {
        accept_connection(listener);
      } else if (!handle(connection)) {
        end_connection(connection);
      }
    }
  }
}
