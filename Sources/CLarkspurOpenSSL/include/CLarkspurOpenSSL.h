// OpenSSL's headers, and functions for the parts that Swift cannot use: macros, variadic functions, callbacks.
//
// The callbacks of a handshake are in Connection.c. They do not call Swift: each notes OpenSSL's question and suspends
// the handshake, and Swift answers before its next call.
#if defined(__linux__) && !defined(LARKSPUR_OPENSSL_H)
#define LARKSPUR_OPENSSL_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// MARK: - Bytes

// Memory that the receiver frees (`free`). A null pointer stands for nothing.
typedef struct {
  size_t count;
  uint8_t bytes[];
} larkspur_bytes;

// MARK: - Configuration

// Creates a client's context with all fixed settings and a reference to `store`. `allows_legacy` allows DHE and static RSA
// beside ECDHE. A stricter setting in the system's configuration of OpenSSL takes precedence over these. Returns null on
// an error, which is in the error queue.
SSL_CTX *larkspur_tls_context(int minimum_version, int maximum_version, bool allows_legacy, X509_STORE *store);
// Appends the secrets of all connections to a file, to which only its owner may have access. Returns null, or the
// reason for a failure.
const char *larkspur_tls_context_log_keys(SSL_CTX *context, const char *path);
// Sets the client's certificate with its intermediates and its key. Returns 0 if they do not match.
int larkspur_tls_context_use_identity(SSL_CTX *context, X509 *leaf, EVP_PKEY *key, STACK_OF(X509) *chain);

// Sets the rules by which chains are verified, in a handshake or outside of one.
void larkspur_verification_rules(X509_VERIFY_PARAM *rules);
// Sets the rules for every verification against the store.
void larkspur_store_rules(X509_STORE *store);
// The verification callback of all stores. Ignores errors that RFC 5280 6.1 does not require.
int larkspur_forgive(int is_good, X509_STORE_CTX *context);

// The host for which a certificate must be issued: a name in lower case without a final dot, or an address. With
// neither, any host will do.
typedef struct {
  char name[254];  // At most 253 bytes (RFC 1035 2.3.4).
  uint8_t address[16];
  uint8_t address_count;
} larkspur_host;

// Sets the host from a name or an address as text; the other is NULL. With both NULL any host will do. Returns false if
// the text is not valid.
bool larkspur_host_set(larkspur_host *host, const char *name, const char *address);

// MARK: - Connection

typedef struct larkspur_tls larkspur_tls;

typedef enum {
  larkspur_tls_done,
  // More ciphertext must arrive first.
  larkspur_tls_needs_input,
  // The room for ciphertext is full.
  larkspur_tls_needs_output,
  // The server's certificates have arrived. Take the result with `larkspur_tls_take_verification`, and then call
  // `larkspur_tls_decide`.
  larkspur_tls_needs_trust,
  // The server asks for a certificate. Call `larkspur_tls_identify`.
  larkspur_tls_needs_identity,
  // The peer has announced the end of its data (close_notify).
  larkspur_tls_closed,
  // The connection has failed. See `larkspur_tls_failure`.
  larkspur_tls_failed,
} larkspur_tls_status;

// The memory lent for one call: ciphertext that has arrived, and room for ciphertext to send.
typedef struct {
  const uint8_t *input;
  size_t input_count;
  uint8_t *output;
  size_t output_room;
  // Whether the stream ends after the input: 1, or else 0.
  size_t input_ended;
} larkspur_tls_flow;

typedef struct {
  larkspur_tls_status status;
  size_t input_used, output_used;
  // The number of bytes of plaintext read or written.
  size_t plain_count;
} larkspur_tls_result;

typedef enum {
  larkspur_tls_group_sound,
  larkspur_tls_group_too_large,
  larkspur_tls_group_not_of_safe_prime,
} larkspur_tls_group;

typedef struct {
  // The deciding error of the queue, or 0: the first one of TLS, or else the first one.
  unsigned long code;
  // The alert that the peer sent, or -1.
  int alert;
  // Whether the server asked for a certificate, and whether one was sent.
  bool identity_requested, identity_sent;
  // Whether the connection ended without close_notify.
  bool truncated;
  // Whether the server had chosen a cipher.
  bool saw_server_hello;
  // The reason for which the group of a finite-field key exchange was refused.
  larkspur_tls_group group;
} larkspur_tls_failure_details;

// A code beside OpenSSL's X509_V_...: a certificate's key exceeds the limit.
enum { larkspur_v_key_too_large = 1001 };

typedef struct {
  int error, depth;           // X509_V_... or larkspur_v_...
  STACK_OF(X509) * sent;  // as the server sent it, leaf first; owned by the caller
  STACK_OF(X509) * verified;  // leaf to root, as far as found; owned by the caller
  larkspur_bytes *complaint;  // the root file that could not be read, and why; owned by the caller
} larkspur_tls_verification_result;

// Verifies the chain of `context`, with the host and the size limits in addition. Leaves `sent` of the result null. The
// error queue is empty afterwards.
larkspur_tls_verification_result larkspur_verify_chain(X509_STORE_CTX *context, const larkspur_host *host);

// Creates a connection, or returns null if memory runs out. With `asks_identity` the handshake is suspended when the
// server asks for a certificate.
larkspur_tls *larkspur_tls_new(SSL_CTX *context, bool asks_identity);
void larkspur_tls_free(larkspur_tls *tls);
SSL *larkspur_tls_ssl(const larkspur_tls *tls);
// Sets the server, as a name or as an address in text; the other is null. The certificate must be issued for it, and a
// name is also sent as SNI. `date` is the time of verification in seconds since 1970. Returns 0 if the text is not
// valid.
int larkspur_tls_set_server(larkspur_tls *tls, const char *name, const char *address, int64_t date);
// Offers a session for resumption, and takes its own reference.
int larkspur_tls_offer(larkspur_tls *tls, SSL_SESSION *session);

// Makes OpenSSL keep its two record buffers of 16 KiB between records.
void larkspur_tls_keep_buffers(larkspur_tls *tls);

void larkspur_tls_handshake(larkspur_tls *tls, const larkspur_tls_flow *flow, larkspur_tls_result *result);
void larkspur_tls_read(larkspur_tls *tls, const larkspur_tls_flow *flow,
                       larkspur_tls_result *result, void *plain, size_t room);
void larkspur_tls_write(larkspur_tls *tls, const larkspur_tls_flow *flow,
                        larkspur_tls_result *result, const void *plain, size_t count);
void larkspur_tls_shut_down(larkspur_tls *tls, const larkspur_tls_flow *flow, larkspur_tls_result *result);

void larkspur_tls_take_verification(larkspur_tls *tls, larkspur_tls_verification_result *result);
// Accepts the server with X509_V_OK. Any other value is the reason for refusing it.
void larkspur_tls_decide(larkspur_tls *tls, int error);
// Lets the handshake continue with the identity, or, if it is null, with the context's identity or none. Returns 0 if
// certificate and key do not match.
int larkspur_tls_identify(larkspur_tls *tls, X509 *leaf, EVP_PKEY *key, STACK_OF(X509) *chain);
void larkspur_tls_failure(const larkspur_tls *tls, larkspur_tls_failure_details *details);
// Returns the oldest session that has arrived and was not taken yet, or null. The caller owns it.
SSL_SESSION *larkspur_tls_take_session(larkspur_tls *tls);
// The bytes are lent for the life of the connection.
size_t larkspur_tls_alpn(const larkspur_tls *tls, const uint8_t **name);
size_t larkspur_tls_stapled_response(const larkspur_tls *tls, const uint8_t **response);
// The distinguished names (RFC 2253, and DER) of the issuers whose certificates the server accepts.
int larkspur_tls_acceptable_issuers(const larkspur_tls *tls);
larkspur_bytes *larkspur_tls_acceptable_issuer(const larkspur_tls *tls, int index);
larkspur_bytes *larkspur_tls_acceptable_issuer_der(const larkspur_tls *tls, int index);

// MARK: - Certificates

// Whether the text is an IPv4 address: four decimal numbers without leading zeros. Each address has only this form.
bool larkspur_is_ipv4_address(const char *text);
// Returns the canonical form of an IPv6 address, or nothing if the text is not one.
larkspur_bytes *larkspur_canonical_ipv6_address(const char *text);

int larkspur_chain_count(const STACK_OF(X509) *chain);
X509 *larkspur_chain_at(const STACK_OF(X509) *chain, int index);
STACK_OF(X509) *larkspur_chain_new(void);
// Appends the certificate, with its own reference. Returns 0 if memory runs out.
int larkspur_chain_append(STACK_OF(X509) *chain, X509 *certificate);
void larkspur_chain_free(STACK_OF(X509) *chain);

larkspur_bytes *larkspur_certificate_der(const X509 *certificate);
larkspur_bytes *larkspur_certificate_spki(const X509 *certificate);
// The name as text (RFC 2253) in UTF-8.
larkspur_bytes *larkspur_name_text(const X509_NAME *name);
larkspur_bytes *larkspur_name_der(const X509_NAME *name);
larkspur_bytes *larkspur_certificate_serial(const X509 *certificate);
// Seconds since 1970, or INT64_MIN for a time that cannot be read.
int64_t larkspur_seconds(const ASN1_TIME *time);
int64_t larkspur_certificate_not_before(const X509 *certificate);
int64_t larkspur_certificate_not_after(const X509 *certificate);
GENERAL_NAMES *larkspur_certificate_names(const X509 *certificate);
int larkspur_names_count(const GENERAL_NAMES *names);
// Returns GEN_DNS or GEN_IPADD and lends the bytes, or returns -1 for a name of another kind.
int larkspur_names_at(const GENERAL_NAMES *names, int index, const uint8_t **bytes, size_t *count);
// Whether the certificate promises that its server always staples (RFC 7633).
bool larkspur_certificate_must_staple(const X509 *certificate);

// Verifies a chain outside of a handshake. If `name` and `address` are both null, any host will do. With `any_anchor` a
// chain may end at any certificate of the store, even if it is not self-signed.
void larkspur_verify(X509_STORE *store, STACK_OF(X509) *sent, const char *name, const char *address, int64_t date,
                     bool any_anchor, larkspur_tls_verification_result *result);

typedef enum {
  larkspur_ocsp_good,
  // The responder gave no answer, for example because it was busy.
  larkspur_ocsp_none,
  larkspur_ocsp_revoked,
  // The response is not about this certificate, or states that its status is unknown.
  larkspur_ocsp_unknown,
  larkspur_ocsp_outdated,
  larkspur_ocsp_malformed,
  // The signer is not authorized.
  larkspur_ocsp_untrusted,
} larkspur_ocsp_status;

// Checks a stapled response for the first certificate of a verified chain.
larkspur_ocsp_status larkspur_check_stapled_response(const uint8_t *response, size_t count, STACK_OF(X509) *verified,
                                                     X509_STORE *store, int64_t date);

// MARK: - Files

// Parses one certificate in DER. Returns NULL if the bytes are anything else.
X509 *larkspur_read_certificate(const void *bytes, size_t count);
// Parses certificates in PEM, or one in DER, and counts the blocks that cannot be read. Returns NULL if no certificate
// can be read.
STACK_OF(X509) *larkspur_read_certificates(const void *bytes, size_t count, int *damaged);
// Return the values of SSL_CERT_FILE and SSL_CERT_DIR, or NULL for OpenSSL's own file and directory. A value is lent until
// the environment changes.
const char *larkspur_named_root_file(void);
const char *larkspur_named_root_folders(void);
// Makes the store look up roots on demand in these directories, which colons separate, or else in OpenSSL's own. Returns
// 0 if memory runs out.
int larkspur_add_root_folders(X509_STORE *store, const char *named_folders);
// Adds the roots of a file, or else of OpenSSL's own file. Returns nothing on success, or else a sentence with the file
// and the error. If OpenSSL's own file has no roots, that is an error only if the directories are empty, too; `is_empty` is
// true then.
larkspur_bytes *larkspur_add_root_file(X509_STORE *store, const char *named_file, const char *named_folders,
                                       bool *is_empty);
// Adds the roots of all files in a directory. Returns their number.
int larkspur_add_root_files(X509_STORE *store, const char *path);
// Returns the system's message for an error as "what: message".
larkspur_bytes *larkspur_system_complaint(const char *what, int error);
// Adds revocation lists in PEM, or one in DER, to the store. Returns their number, or -1 if one cannot be read.
int larkspur_read_revocation_lists(X509_STORE *store, const void *bytes, size_t count);

typedef enum {
  larkspur_secret_unreadable,
  larkspur_secret_needs_password,
  // The secret is encrypted or protected with an algorithm that OpenSSL does not support here.
  larkspur_secret_unsupported,
} larkspur_secret_failure;

// Parses a private key in PEM or DER. `password` may be null.
EVP_PKEY *larkspur_read_key(const void *bytes, size_t count, const char *password, larkspur_secret_failure *failure);
// The private key in DER, not encrypted, or nothing if the key cannot be exported.
larkspur_bytes *larkspur_key_der(const EVP_PKEY *key);
// Parses a PKCS#12 archive. Returns 0 if it cannot be read.
int larkspur_read_pkcs12(const void *bytes, size_t count, const char *password, X509 **leaf, EVP_PKEY **key,
                         STACK_OF(X509) **chain, larkspur_secret_failure *failure);

int larkspur_error_library(unsigned long code);
int larkspur_error_code_reason(unsigned long code);

#endif
