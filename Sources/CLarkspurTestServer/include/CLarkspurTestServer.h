// What LarkspurTestServer needs of OpenSSL: keys and signatures (larkspur_ca_), and the server's side of TLS as bytes
// in, bytes out (larkspur_server_). No OpenSSL type shows here.
//
// Functions that give bytes allocate them and store them in `*out`, `*out_count`: give them back to larkspur_ca_free.
// They return 1, or 0 when OpenSSL would not do it: then larkspur_ca_error says why. Keys are PKCS#8, all else is DER.
#ifndef LARKSPUR_TEST_SERVER_H
#define LARKSPUR_TEST_SERVER_H

#include <stddef.h>
#include <stdint.h>

// MARK: Keys and signatures

void larkspur_ca_free(uint8_t *bytes);

// Writes the oldest error of this thread into `words`, NUL-terminated, and forgets all of them.
void larkspur_ca_error(char *words, size_t capacity);

// Seconds since 1970.
int64_t larkspur_ca_seconds_now(void);

// `curve`: "P-256" and so on; NULL for RSA of so many bits; "ED25519".
int larkspur_ca_make_key(const char *curve, int bits, uint8_t **out, size_t *out_count);

// The SubjectPublicKeyInfo.
int larkspur_ca_public_key(const uint8_t *key, size_t key_count, uint8_t **out, size_t *out_count);

// The SHA-1 of the public key's bits (RFC 5280, section 4.2.1.2).
int larkspur_ca_key_identifier(const uint8_t *key, size_t key_count, uint8_t **out, size_t *out_count);

enum { LARKSPUR_CA_EC = 1, LARKSPUR_CA_RSA = 2, LARKSPUR_CA_ED25519 = 3 };

// One of the above; 0 for anything else.
int larkspur_ca_key_kind(const uint8_t *key, size_t key_count);

// `digest`: "SHA256" and so on; ignored for Ed25519.
int larkspur_ca_sign(const uint8_t *key, size_t key_count, const char *digest, const uint8_t *bytes, size_t count,
                     uint8_t **out, size_t *out_count);

int larkspur_ca_digest(const char *digest, const uint8_t *bytes, size_t count, uint8_t **out, size_t *out_count);

// The key in PEM, under a passphrase: PKCS#8 with AES-256, or the older format with "Proc-Type: 4,ENCRYPTED".
int larkspur_ca_encrypt_key(const uint8_t *key, size_t key_count, const char *passphrase, int is_traditional,
                            uint8_t **out, size_t *out_count);

// `certificates`: several, one behind the other; the key's own first. AES-256, or triple DES as older programs want.
int larkspur_ca_pkcs12(const uint8_t *key, size_t key_count, const uint8_t *certificates, size_t certificates_count,
                       const char *password, const char *name, int is_legacy, uint8_t **out, size_t *out_count);

// MARK: What the server's connections share

// Complete before the first session is made; then sessions on any threads may use it.
typedef struct larkspur_server_context larkspur_server_context;

// NULL: larkspur_ca_error says why. The functions after it return 1, or 0 likewise.
larkspur_server_context *larkspur_server_context_create(void);
void larkspur_server_context_free(larkspur_server_context *context);

// 0x0301 for TLS 1.0, and so on.
int larkspur_server_set_versions(larkspur_server_context *context, int min, int max);

// Certificates one behind the other, in the order in which they are to be sent. The key may be another one's than the
// first certificate's: then signatures come out wrong.
int larkspur_server_set_certificates(larkspur_server_context *context, const uint8_t *certificates, size_t count,
                                     const uint8_t *key, size_t key_count);

void larkspur_server_set_security_level(larkspur_server_context *context, int level);
int larkspur_server_set_ciphers(larkspur_server_context *context, const char *list);
int larkspur_server_set_ciphersuites(larkspur_server_context *context, const char *list);
int larkspur_server_set_groups(larkspur_server_context *context, const char *list);
int larkspur_server_set_signature_algorithms(larkspur_server_context *context, const char *list);

// 512, 768, 1024, 1536, 2048, 3072, 4096, 6144 or 8192.
int larkspur_server_set_dh_bits(larkspur_server_context *context, int bits);

// `tickets`: how many TLS 1.3 tickets behind a handshake. `are_stateless`: they hold the session themselves, and TLS
// 1.2 has them too. `keeps_sessions`: the server remembers sessions, for session identifiers and tickets that are not
// stateless.
int larkspur_server_set_resumption(larkspur_server_context *context, size_t tickets, int are_stateless,
                                   int keeps_sessions);

enum { LARKSPUR_SERVER_CLIENT_ASKED = 1, LARKSPUR_SERVER_CLIENT_REQUIRED = 2, LARKSPUR_SERVER_CLIENT_VERIFIED = 3 };

// `authorities`, of which client certificates are to come: for the last mode.
int larkspur_server_set_client_certificates(larkspur_server_context *context, int mode, const uint8_t *authorities,
                                            size_t count);

// Names in the certificate request: the subjects of these certificates.
int larkspur_server_set_acceptable_issuers(larkspur_server_context *context, const uint8_t *certificates, size_t count);

int larkspur_server_set_stapled_response(larkspur_server_context *context, const uint8_t *response, size_t count);

enum {
  LARKSPUR_SERVER_ALPN_IGNORE = 0,
  LARKSPUR_SERVER_ALPN_CHOOSE,
  LARKSPUR_SERVER_ALPN_INSIST,
  LARKSPUR_SERVER_ALPN_ANSWER,
};

// `protocols`: a length byte before each. CHOOSE: the first one that the client has offered. INSIST: as CHOOSE, and an
// alert if there is none. ANSWER: the first one, offered or not.
int larkspur_server_set_alpn(larkspur_server_context *context, int mode, const uint8_t *protocols, size_t count);

int larkspur_server_set_fragment_bytes_max(larkspur_server_context *context, long bytes);

// MARK: One connection

// The server's side of one TLS connection, on one thread at a time. No sockets: ciphertext is fed and taken.
typedef struct larkspur_server_session larkspur_server_session;

larkspur_server_session *larkspur_server_session_create(larkspur_server_context *context);
void larkspur_server_session_free(larkspur_server_session *session);

// Ciphertext from the client.
int larkspur_server_feed(larkspur_server_session *session, const uint8_t *bytes, size_t count);
// Ciphertext for the client: how much there is, and at most so much of it.
size_t larkspur_server_output_count(larkspur_server_session *session);
size_t larkspur_server_take_output(larkspur_server_session *session, uint8_t *bytes, size_t capacity);

enum {
  LARKSPUR_SERVER_DONE = 1,
  LARKSPUR_SERVER_WANTS_INPUT = 0,
  // The client has sent close_notify.
  LARKSPUR_SERVER_ENDED = -1,
  // larkspur_server_error_words says why. An alert may stand in the output.
  LARKSPUR_SERVER_FAILED = -2,
};

int larkspur_server_handshake(larkspur_server_session *session);
int larkspur_server_read(larkspur_server_session *session, uint8_t *bytes, size_t capacity, size_t *count);
// All of it. After WANTS_INPUT it is to be called again with the same bytes.
int larkspur_server_write(larkspur_server_session *session, const uint8_t *bytes, size_t count);

void larkspur_server_error_words(larkspur_server_session *session, char *words, size_t capacity);

// MARK: What servers seldom do

void larkspur_server_close_notify(larkspur_server_session *session);
// The next ClientHello is answered with this fatal alert.
void larkspur_server_refuse(larkspur_server_session *session, int alert);
int larkspur_server_update_key(larkspur_server_session *session, int is_update_requested);
int larkspur_server_send_ticket(larkspur_server_session *session);
int larkspur_server_request_renegotiation(larkspur_server_session *session);
// A record of any type with any content, under the connection's keys; up to 65,000 bytes. AEAD cipher suites only.
int larkspur_server_forge_record(larkspur_server_session *session, int type, const uint8_t *bytes, size_t count);

// MARK: What the connection has shown

// Never NULL; "" if there is nothing to tell.
const char *larkspur_server_version(larkspur_server_session *session);
const char *larkspur_server_cipher(larkspur_server_session *session);
int larkspur_server_is_resumed(larkspur_server_session *session);
int larkspur_server_renegotiations(larkspur_server_session *session);

enum {
  // Nothing, if the client sent none.
  LARKSPUR_SERVER_FACT_SERVER_NAME = 0,
  // A length byte before each protocol.
  LARKSPUR_SERVER_FACT_ALPN_OFFERED,
  LARKSPUR_SERVER_FACT_ALPN_CHOSEN,
  // Two bytes each, in the client's order.
  LARKSPUR_SERVER_FACT_CIPHERS_OFFERED,
  LARKSPUR_SERVER_FACT_EXTENSIONS_OFFERED,
  // The client's certificate, and its subject as in RFC 2253.
  LARKSPUR_SERVER_FACT_CERTIFICATE,
  LARKSPUR_SERVER_FACT_SUBJECT,
  // Three bytes each: 1 if it came from the client, level, number.
  LARKSPUR_SERVER_FACT_ALERTS,
};

// As other functions that give bytes. 0: there is no such fact.
int larkspur_server_fact(larkspur_server_session *session, int fact, uint8_t **out, size_t *out_count);

// How many alerts there have been, either way.
int larkspur_server_alert_count(larkspur_server_session *session);

#endif
