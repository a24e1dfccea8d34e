// The floor of event streams: blocking reads, and a search for the ends of lines. An empty line ends an event.
//
// Larkspur's clients check the length of each event's data as well, and this client that of each line.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "contract.h"

enum { line_bytes = 38 };  // `data: ` and 32 bytes

static int descriptor;
static char buffer[256 << 10];
static size_t begin, end;  // received bytes that have not been processed

static void receive(void) {
  memmove(buffer, buffer + begin, end - begin);
  end -= begin;
  begin = 0;
  ssize_t count = recv(descriptor, buffer + end, sizeof buffer - end, 0);
  if (count == 0) fail("the server closed the connection");
  if (count < 0 && errno != EINTR) fail("recv: %s", strerror(errno));
  if (count > 0) end += (size_t)count;
}

// Reads the head of the response.
static void read_head(uint64_t body_bytes) {
  char *head_end;
  while (!(head_end = memmem(buffer + begin, end - begin, "\r\n\r\n", 4))) receive();
  char *field = memmem(buffer + begin, end - begin, "\r\nContent-Length: ", 18);
  if (memcmp(buffer + begin, "HTTP/1.1 200 ", 13) != 0 || !field || field > head_end ||
      strtoull(field + 18, NULL, 10) != body_bytes)
    fail("the response is not a 200 with as many events as requested");
  begin = (size_t)(head_end + 4 - buffer);
}

// Returns the number of complete events in the buffer.
static uint64_t read_events(void) {
  uint64_t count = 0;
  for (;;) {
    char *line = buffer + begin, *line_end = memchr(line, '\n', end - begin);
    if (!line_end) return count;
    if (line_end == line) {
      count++;
    } else if (line_end - line != line_bytes || memcmp(line, "data: ", 6) != 0) {
      fail("this is no event of the server");
    }
    begin += (size_t)(line_end + 1 - line);
  }
}

static void run(const Arguments *arguments, uint64_t requests) {
  if (requests == 0) return;
  char request[512];
  int count = snprintf(request, sizeof request, "GET %s/%llu HTTP/1.1\r\nHost: %s:%d\r\n\r\n",
                       arguments->workload->path, (unsigned long long)requests, arguments->host, arguments->port);
  if (count >= (int)sizeof request) fail("the host name is too long");
  if (send(descriptor, request, (size_t)count, MSG_NOSIGNAL) != count) fail("send: %s", strerror(errno));
  read_head(requests * arguments->workload->body_bytes);
  for (uint64_t received = read_events(); received < requests; received += read_events()) receive();
}

int main(int argument_count, char **argument_values) {
  Arguments arguments = parse_arguments_for(events, argument_count, argument_values);
  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((uint16_t)arguments.port)};
  if (inet_pton(AF_INET, arguments.host, &server.sin_addr) != 1) fail("not an IPv4 address: %s", arguments.host);
  descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0 || connect(descriptor, (struct sockaddr *)&server, sizeof server) != 0)
    fail("connect: %s", strerror(errno));

  run(&arguments, arguments.warm_up_requests);
  Start start = start_measuring(&arguments);
  run(&arguments, arguments.requests);
  finish_measuring(&arguments, start, arguments.requests * arguments.workload->body_bytes);
  return 0;
}
