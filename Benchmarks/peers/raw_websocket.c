// The floor of WebSockets: the cost of the kernel and of masking. One fixed handshake, epoll, and no parser.
//
// A frame gets a mask of its own from the kernel's random numbers, 1024 masks with one call. The head of an echo is
// known, because the server sends each message back in one frame: the echo is complete after that many bytes. An echo
// whose bytes arrive together costs three system calls: send, epoll_wait, recv.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "contract.h"

enum { head_bytes_max = 14, message_bytes_max = 64 << 10, mask_count = 1024 };

typedef struct {
  int socket;
  size_t received;  // bytes of the current echo
  unsigned char echo[head_bytes_max + message_bytes_max];
} Connection;

static const Workload *workload;
static struct sockaddr_in server;
static int poller;
static Connection connections[connections_max];
static unsigned char message[message_bytes_max];
static unsigned char frame[head_bytes_max + message_bytes_max];
static size_t head_bytes;  // the length of an echo's head
static unsigned char head[head_bytes_max];

// The key and the answer to it are the example of RFC 6455 1.3. The handshake is not measured.
static void open_websocket(Connection *connection, const char *host, int port) {
  char text[512];
  connection->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection->socket < 0) fail("socket: %s", strerror(errno));
  if (connect(connection->socket, (struct sockaddr *)&server, sizeof server) != 0)
    fail("connect: %s", strerror(errno));
  int yes = 1;
  setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  int length = snprintf(text, sizeof text,
                        "GET %s HTTP/1.1\r\nHost: %s:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
                        workload->path, host, port);
  if (length >= (int)sizeof text) fail("the host name is too long");
  if (send(connection->socket, text, (size_t)length, MSG_NOSIGNAL) != length) fail("send: %s", strerror(errno));
  // The server sends nothing behind its head before the first message, and loopback delivers the head in one piece.
  ssize_t count = recv(connection->socket, text, sizeof text - 1, 0);
  if (count < 0) fail("recv: %s", strerror(errno));
  text[count] = 0;
  if (strncmp(text, "HTTP/1.1 101 ", 13) != 0 || !strstr(text, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") ||
      strcmp(text + count - 4, "\r\n\r\n") != 0)
    fail("the server does not open the WebSocket");
  struct epoll_event interest = {.events = EPOLLIN, .data.ptr = connection};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, connection->socket, &interest) != 0) fail("epoll_ctl: %s", strerror(errno));
}

// Writes the head of a frame of `message`, without a mask. Returns its length.
static size_t write_head(unsigned char *bytes) {
  size_t count = workload->body_bytes;
  bytes[0] = 0x82;
  if (count < 126) {
    bytes[1] = (unsigned char)count;
    return 2;
  }
  if (count < 1 << 16) {
    bytes[1] = 126;
    bytes[2] = (unsigned char)(count >> 8);
    bytes[3] = (unsigned char)count;
    return 4;
  }
  bytes[1] = 127;
  for (int index = 0; index < 8; index++) bytes[2 + index] = (unsigned char)((uint64_t)count >> (56 - 8 * index));
  return 10;
}

static uint32_t next_mask(void) {
  static uint32_t masks[mask_count];
  static size_t used = mask_count;
  if (used == mask_count) {
    // The kernel may return fewer bytes than these when a signal arrives.
    for (size_t filled = 0; filled < sizeof masks;) {
      ssize_t count = getrandom((char *)masks + filled, sizeof masks - filled, 0);
      if (count < 0 && errno != EINTR) fail("getrandom: %s", strerror(errno));
      if (count > 0) filled += (size_t)count;
    }
    used = 0;
  }
  return masks[used++];
}

static void send_message(Connection *connection) {
  connection->received = 0;
  uint32_t mask = next_mask();
  uint64_t wide = (uint64_t)mask << 32 | mask;
  memcpy(frame, head, head_bytes);
  frame[1] |= 0x80;
  memcpy(frame + head_bytes, &mask, 4);
  unsigned char *payload = frame + head_bytes + 4;
  // All lengths of messages are multiples of 8.
  for (size_t index = 0; index < workload->body_bytes; index += 8) {
    uint64_t word;
    memcpy(&word, message + index, 8);
    word ^= wide;
    memcpy(payload + index, &word, 8);
  }
  // The call blocks until the kernel has taken the frame: the server reads a frame to its end before it answers.
  size_t count = head_bytes + 4 + workload->body_bytes;
  ssize_t sent = send(connection->socket, frame, count, MSG_NOSIGNAL);
  if (sent != (ssize_t)count) fail("send: %s", sent < 0 ? strerror(errno) : "short count");
}

// Receives bytes. Returns whether the echo is complete.
static int receive(Connection *connection) {
  size_t expected = head_bytes + workload->body_bytes;
  ssize_t count = recv(connection->socket, connection->echo + connection->received,
                       sizeof connection->echo - connection->received, MSG_DONTWAIT);
  if (count == 0) fail("the server closed the connection");
  if (count < 0) {
    if (errno == EAGAIN || errno == EINTR) return 0;  // a spurious wake-up: epoll will report it again
    fail("recv: %s", strerror(errno));
  }
  connection->received += (size_t)count;
  if (connection->received < expected) return 0;
  if (connection->received > expected || memcmp(connection->echo, head, head_bytes) != 0)
    fail("the echo is not the message");
  return 1;
}

static void run(uint64_t requests) {
  uint64_t unsent = requests, unfinished = requests;
  for (int index = 0; index < workload->connections && unsent > 0; index++, unsent--)
    send_message(&connections[index]);
  while (unfinished > 0) {
    struct epoll_event polled[connections_max];
    int count = epoll_wait(poller, polled, connections_max, -1);
    if (count < 0 && errno != EINTR) fail("epoll_wait: %s", strerror(errno));
    for (int index = 0; index < count; index++) {
      Connection *connection = polled[index].data.ptr;
      if (!receive(connection)) continue;
      unfinished--;
      if (unsent == 0) continue;
      unsent--;
      send_message(connection);
    }
  }
}

int main(int argument_count, char **argument_values) {
  Arguments arguments = parse_arguments_for(websocket, argument_count, argument_values);
  workload = arguments.workload;
  server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)arguments.port)};
  if (inet_pton(AF_INET, arguments.host, &server.sin_addr) != 1) fail("not an IPv4 address: %s", arguments.host);
  poller = epoll_create1(EPOLL_CLOEXEC);
  if (poller < 0) fail("epoll_create1: %s", strerror(errno));
  memset(message, 'm', sizeof message);
  head_bytes = write_head(head);
  for (int index = 0; index < workload->connections; index++)
    open_websocket(&connections[index], arguments.host, arguments.port);

  run(arguments.warm_up_requests);
  Start start = start_measuring(&arguments);
  run(arguments.requests);
  finish_measuring(&arguments, start, arguments.requests * workload->body_bytes);
  return 0;
}
