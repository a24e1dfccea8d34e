// What a server's session consists of: for the files that implement it.
#ifndef LARKSPUR_SERVER_SESSION_H
#define LARKSPUR_SERVER_SESSION_H

#include "CLarkspurOpenSSLServer.h"

#include <openssl/ssl.h>

struct larkspur_server_context {
  SSL_CTX *ssl;
  uint8_t *stapled_response;
  size_t stapled_response_count;
  int alpn_mode;
  uint8_t *alpn;
  size_t alpn_count;
};

#define LARKSPUR_ALERTS_MAX 64
#define LARKSPUR_SECRET_MAX 64

// The keys that the server writes with, as far as they are known: to forge records.
struct larkspur_server_writer {
  // TLS 1.3: the traffic secret.
  uint8_t secret[LARKSPUR_SECRET_MAX];
  size_t secret_count;
  // Of the next record.
  uint64_t sequence;
  // Once a record has been forged, OpenSSL's own count is wrong: everything is forged from then on.
  int is_forging;
};

struct larkspur_server_session {
  SSL *ssl;
  // Owned by `ssl`.
  BIO *input, *output;
  int has_failed;
  int refusal;
  // How often the server has said Finished.
  int handshakes;
  struct larkspur_server_writer writer;
  // The last ClientHello.
  uint8_t *server_name, *alpn_offered, *ciphers_offered, *extensions_offered;
  size_t server_name_count, alpn_offered_count, ciphers_offered_count, extensions_offered_count;
  uint8_t alerts[3 * LARKSPUR_ALERTS_MAX];
  int alert_count;
  char words[256];
};

// Called by OpenSSL: of which messages and secrets there are.
void larkspur_writer_message(int is_write, int version, int type, const void *bytes, size_t count, SSL *ssl,
                             void *argument);
void larkspur_writer_keylog(const SSL *ssl, const char *line);

#endif
