// The server of the upload workloads: reads a request's body to its end, discards it, and then answers.
//
// Called as PROGRAM [CERTIFICATE KEY]; with these arguments it speaks TLS. It listens on a port of 127.0.0.1 that the
// kernel chooses, and prints the port. The path gives the length of the body: /upload/1024. Each connection is a
// process of its own, so that all input and output may block.

#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { head_bytes_max = 16 << 10, piece_bytes = 64 << 10 };

typedef struct {
  int descriptor;
  SSL *tls;  // NULL without TLS
} Peer;

__attribute__((noreturn)) static void fail(const char *what) {
  perror(what);
  exit(1);
}

static ssize_t receive(const Peer *peer, void *bytes, size_t count) {
  return peer->tls ? SSL_read(peer->tls, bytes, (int)count) : recv(peer->descriptor, bytes, count, 0);
}

// Discards bytes of the body. Without TLS the kernel drops them, and copies nothing.
static ssize_t discard(const Peer *peer, uint64_t count) {
  static char piece[piece_bytes];
  if (peer->tls) return SSL_read(peer->tls, piece, (int)(count < sizeof piece ? count : sizeof piece));
  return recv(peer->descriptor, NULL, count < 1 << 20 ? count : 1 << 20, MSG_TRUNC);
}

static void answer(const Peer *peer, const char *text) {
  size_t count = strlen(text);
  ssize_t sent = peer->tls ? SSL_write(peer->tls, text, (int)count) : send(peer->descriptor, text, count, MSG_NOSIGNAL);
  if (sent != (ssize_t)count) exit(0);
}

// Serves one request. Returns 0 if the connection is over.
static int serve(const Peer *peer) {
  static char head[head_bytes_max + 1];
  size_t count = 0;
  char *end = NULL;
  while (!end) {
    ssize_t received = receive(peer, head + count, head_bytes_max - count);
    if (received <= 0) return 0;
    count += (size_t)received;
    head[count] = 0;
    end = strstr(head, "\r\n\r\n");
  }
  size_t behind = count - (size_t)(end + 4 - head);
  end[2] = 0;
  unsigned long long announced = 0, expected = 1;
  const char *field = strcasestr(head, "\r\ncontent-length:");
  if (sscanf(head, "%*s /upload/%llu ", &expected) != 1 || !field || sscanf(field + 17, "%llu", &announced) != 1 ||
      announced != expected || behind > announced) {
    answer(peer, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    return 0;
  }
  if (behind == 0 && strcasestr(head, "\r\nexpect: 100-continue\r\n")) answer(peer, "HTTP/1.1 100 Continue\r\n\r\n");
  for (uint64_t left = announced - behind; left > 0;) {
    ssize_t dropped = discard(peer, left);
    if (dropped <= 0) return 0;
    left -= (uint64_t)dropped;
  }
  answer(peer,
         "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n{\"received\":true}");
  return 1;
}

static SSL_CTX *make_context(const char *certificate, const char *key) {
  SSL_CTX *context = SSL_CTX_new(TLS_server_method());
  if (!context || SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
    fail("certificate");
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  return context;
}

int main(int argument_count, char **arguments) {
  if (argument_count != 1 && argument_count != 3) fail("usage: sink [CERTIFICATE KEY]");
  SSL_CTX *context = argument_count == 3 ? make_context(arguments[1], arguments[2]) : NULL;
  signal(SIGCHLD, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 128) != 0 ||
      getsockname(listener, (struct sockaddr *)&address, &length) != 0)
    fail("listen");
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  for (;;) {
    Peer peer = {.descriptor = accept(listener, NULL, NULL)};
    if (peer.descriptor < 0) continue;
    if (fork() == 0) {
      int on = 1;
      setsockopt(peer.descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      peer.tls = context ? SSL_new(context) : NULL;
      if (peer.tls && (SSL_set_fd(peer.tls, peer.descriptor) != 1 || SSL_accept(peer.tls) != 1)) exit(0);
      while (serve(&peer)) {
      }
      exit(0);
    }
    close(peer.descriptor);
  }
}
