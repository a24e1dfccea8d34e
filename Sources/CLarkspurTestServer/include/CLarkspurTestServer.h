// The parts of OpenSSL that LarkspurTestServer needs: keys and signatures (larkspur_ca_), and the server's side of TLS,
// bytes in and bytes out (larkspur_server_). No OpenSSL type is visible here.
//
// Functions with `out` and `out_count` allocate the bytes that they store there. Free them with larkspur_ca_free. They
// return 1, or 0 on an error of OpenSSL, which larkspur_ca_error reports. Keys are PKCS#8, and everything else is DER.
#if defined(__linux__) && !defined(LARKSPUR_TEST_SERVER_H)
#define LARKSPUR_TEST_SERVER_H

#include <stddef.h>
#include <stdint.h>

// MARK: Keys and signatures

void larkspur_ca_free(uint8_t *bytes);

// Writes this thread's oldest error into `message`, NUL-terminated, and clears the error queue.
void larkspur_ca_error(char *message, size_t capacity);

// Seconds since 1970.
int64_t larkspur_ca_seconds_now(void);

// Creates a key. `curve` is "P-256" or another curve, "ED25519", or NULL for RSA with `bits` bits.
int larkspur_ca_make_key(const char *curve, int bits, uint8_t **out, size_t *out_count);

// Returns the SubjectPublicKeyInfo.
int larkspur_ca_public_key(const uint8_t *key, size_t key_count, uint8_t **out, size_t *out_count);

// Returns the SHA-1 of the public key's bits (RFC 5280, section 4.2.1.2).
int larkspur_ca_key_identifier(const uint8_t *key, size_t key_count, uint8_t **out, size_t *out_count);

enum { LARKSPUR_CA_EC = 1, LARKSPUR_CA_RSA = 2, LARKSPUR_CA_ED25519 = 3 };

// Returns LARKSPUR_CA_EC, _RSA or _ED25519, or 0 for any other key.
int larkspur_ca_key_kind(const uint8_t *key, size_t key_count);

// Signs bytes. `digest` is "SHA256" or another digest, and is ignored for Ed25519.
int larkspur_ca_sign(const uint8_t *key, size_t key_count, const char *digest, const uint8_t *bytes, size_t count,
                     uint8_t **out, size_t *out_count);

int larkspur_ca_digest(const char *digest, const uint8_t *bytes, size_t count, uint8_t **out, size_t *out_count);

// Returns the encrypted key in PEM: PKCS#8 with AES-256, or the older format with "Proc-Type: 4,ENCRYPTED".
int larkspur_ca_encrypt_key(const uint8_t *key, size_t key_count, const char *passphrase, int is_traditional,
                            uint8_t **out, size_t *out_count);

// Returns an archive. `certificates` has one certificate behind the other, that of the key first. The encryption is
// AES-256, or triple DES (`is_legacy`), which older programs need.
int larkspur_ca_pkcs12(const uint8_t *key, size_t key_count, const uint8_t *certificates, size_t certificates_count,
                       const char *password, const char *name, int is_legacy, uint8_t **out, size_t *out_count);

// MARK: The context of a server's connections

// Complete the context before the first session is created. Afterwards sessions on any thread may use it.
typedef struct larkspur_server_context larkspur_server_context;

// Returns NULL on an error, which larkspur_ca_error reports. The functions below return 1, or 0 on an error.
larkspur_server_context *larkspur_server_context_create(void);
void larkspur_server_context_free(larkspur_server_context *context);

// Sets the range of versions: 0x0301 is TLS 1.0, and so on.
int larkspur_server_set_versions(larkspur_server_context *context, int min, int max);

// Sets certificates, one behind the other, in the order in which they are sent. The key may belong to another
// certificate of the same kind (EC or RSA). Signatures are then wrong.
int larkspur_server_set_certificates(larkspur_server_context *context, const uint8_t *certificates, size_t count,
                                     const uint8_t *key, size_t key_count);

void larkspur_server_set_security_level(larkspur_server_context *context, int level);
int larkspur_server_set_ciphers(larkspur_server_context *context, const char *list);
int larkspur_server_set_ciphersuites(larkspur_server_context *context, const char *list);
int larkspur_server_set_groups(larkspur_server_context *context, const char *list);
int larkspur_server_set_signature_algorithms(larkspur_server_context *context, const char *list);

// Sets the size of the DH group: 512, 768, 1024, 1536, 2048, 3072, 4096, 6144 or 8192.
int larkspur_server_set_dh_bits(larkspur_server_context *context, int bits);

// Sets how sessions are resumed. `tickets` is the number of TLS 1.3 tickets after a handshake. With `are_stateless`
// tickets contain the session, and TLS 1.2 has tickets, too. With `keeps_sessions` the server keeps sessions, for
// session identifiers and for tickets that are not stateless.
int larkspur_server_set_resumption(larkspur_server_context *context, size_t tickets, int are_stateless,
                                   int keeps_sessions);

enum { LARKSPUR_SERVER_CLIENT_ASKED = 1, LARKSPUR_SERVER_CLIENT_REQUIRED = 2, LARKSPUR_SERVER_CLIENT_VERIFIED = 3 };

// Sets whether client certificates are requested. `authorities` are their issuers, for LARKSPUR_SERVER_CLIENT_VERIFIED.
int larkspur_server_set_client_certificates(larkspur_server_context *context, int mode, const uint8_t *authorities,
                                            size_t count);

// Adds the subjects of these certificates to the certificate request.
int larkspur_server_set_acceptable_issuers(larkspur_server_context *context, const uint8_t *certificates, size_t count);

int larkspur_server_set_stapled_response(larkspur_server_context *context, const uint8_t *response, size_t count);

enum {
  LARKSPUR_SERVER_ALPN_IGNORE = 0,
  LARKSPUR_SERVER_ALPN_CHOOSE,
  LARKSPUR_SERVER_ALPN_INSIST,
  LARKSPUR_SERVER_ALPN_ANSWER,
};

// Sets the protocols, each with a length byte in front. CHOOSE takes the first one that the client has offered. INSIST
// does so, too, and sends an alert if there is none. ANSWER takes the first one, offered or not.
int larkspur_server_set_alpn(larkspur_server_context *context, int mode, const uint8_t *protocols, size_t count);

int larkspur_server_set_fragment_bytes_max(larkspur_server_context *context, long bytes);

// MARK: Connection

// The server's side of one TLS connection, without a socket: the caller feeds and takes ciphertext. Use it on one
// thread at a time.
typedef struct larkspur_server_session larkspur_server_session;

larkspur_server_session *larkspur_server_session_create(larkspur_server_context *context);
void larkspur_server_session_free(larkspur_server_session *session);

// Adds ciphertext from the client.
int larkspur_server_feed(larkspur_server_session *session, const uint8_t *bytes, size_t count);
// The amount of ciphertext for the client, and a function that takes at most `capacity` bytes of it.
size_t larkspur_server_output_count(larkspur_server_session *session);
size_t larkspur_server_take_output(larkspur_server_session *session, uint8_t *bytes, size_t capacity);

enum {
  LARKSPUR_SERVER_DONE = 1,
  LARKSPUR_SERVER_NEEDS_INPUT = 0,
  // The client has sent close_notify.
  LARKSPUR_SERVER_ENDED = -1,
  // An error, which larkspur_server_error_message reports. The output may contain an alert.
  LARKSPUR_SERVER_FAILED = -2,
};

int larkspur_server_handshake(larkspur_server_session *session);
int larkspur_server_read(larkspur_server_session *session, uint8_t *bytes, size_t capacity, size_t *count);
// Writes all bytes. After WANTS_INPUT, call it again with these bytes.
int larkspur_server_write(larkspur_server_session *session, const uint8_t *bytes, size_t count);

void larkspur_server_error_message(larkspur_server_session *session, char *message, size_t capacity);

// MARK: Unusual actions of a server

void larkspur_server_close_notify(larkspur_server_session *session);
// Makes the server answer the next ClientHello with this fatal alert.
void larkspur_server_refuse(larkspur_server_session *session, int alert);
int larkspur_server_update_key(larkspur_server_session *session, int is_update_requested);
int larkspur_server_send_ticket(larkspur_server_session *session);
int larkspur_server_request_renegotiation(larkspur_server_session *session);
// Sends a record of any type and content, at most 65,000 bytes, encrypted with the connection's keys. Only for AEAD
// cipher suites (AES-GCM and ChaCha20-Poly1305).
int larkspur_server_forge_record(larkspur_server_session *session, int type, const uint8_t *bytes, size_t count);

// MARK: Facts about the connection

// The name of the version, and of the cipher, which is "" before one is chosen. Never NULL.
const char *larkspur_server_version(larkspur_server_session *session);
const char *larkspur_server_cipher(larkspur_server_session *session);
int larkspur_server_is_resumed(larkspur_server_session *session);
int larkspur_server_renegotiations(larkspur_server_session *session);

enum {
  // Absent if the client did not send it.
  LARKSPUR_SERVER_FACT_SERVER_NAME = 0,
  // Each protocol has a length byte in front.
  LARKSPUR_SERVER_FACT_ALPN_OFFERED,
  LARKSPUR_SERVER_FACT_ALPN_CHOSEN,
  // Two bytes each, in the client's order.
  LARKSPUR_SERVER_FACT_CIPHERS_OFFERED,
  LARKSPUR_SERVER_FACT_EXTENSIONS_OFFERED,
  // The client's certificate, and its subject (RFC 2253).
  LARKSPUR_SERVER_FACT_CERTIFICATE,
  LARKSPUR_SERVER_FACT_SUBJECT,
  // Three bytes each: 1 if the client sent it or else 0, the level, and the number.
  LARKSPUR_SERVER_FACT_ALERTS,
};

// Returns a fact in allocated bytes, which larkspur_ca_free frees. Returns 0 if there is no such fact.
int larkspur_server_fact(larkspur_server_session *session, int fact, uint8_t **out, size_t *out_count);

// The number of alerts in both directions. The session notes at most 64.
int larkspur_server_alert_count(larkspur_server_session *session);

#endif
