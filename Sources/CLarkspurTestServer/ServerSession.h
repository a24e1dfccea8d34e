// The contents of a server's context and session, for the files that implement them.
#if defined(__linux__) && !defined(LARKSPUR_SERVER_SESSION_H)
#define LARKSPUR_SERVER_SESSION_H

#include "CLarkspurTestServer.h"

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

// The secret with which the server writes, and its record count, for forging records.
struct larkspur_server_writer {
  // The traffic secret of TLS 1.3.
  uint8_t secret[LARKSPUR_SECRET_MAX];
  size_t secret_count;
  // The number of the next record.
  uint64_t sequence;
  // Set once a record has been forged. OpenSSL's record count is wrong from then on, so all further records are forged.
  int is_forging;
};

struct larkspur_server_session {
  SSL *ssl;
  // Owned by `ssl`.
  BIO *input, *output;
  int has_failed;
  int refusal;
  // The number of Finished messages that the server has sent.
  int handshakes;
  struct larkspur_server_writer writer;
  // Contents of the latest ClientHello.
  uint8_t *server_name, *alpn_offered, *ciphers_offered, *extensions_offered;
  size_t server_name_count, alpn_offered_count, ciphers_offered_count, extensions_offered_count;
  uint8_t alerts[3 * LARKSPUR_ALERTS_MAX];
  int alert_count;
  char message[256];
};

// Callbacks of OpenSSL for messages and secrets.
void larkspur_writer_message(int is_write, int version, int type, const void *bytes, size_t count, SSL *ssl,
                             void *argument);
void larkspur_writer_keylog(const SSL *ssl, const char *line);

#endif
