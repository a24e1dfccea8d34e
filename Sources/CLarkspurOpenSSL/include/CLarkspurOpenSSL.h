// OpenSSL's headers, and what Swift cannot see of them: macros, variadic calls, callbacks.
//
// The callbacks of a handshake live in Connection.c. None of them calls into Swift: each notes what OpenSSL
// wants to know and suspends the handshake, and Swift answers with the next call.
#ifndef LARKSPUR_OPENSSL_H
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

// Memory that the receiver frees with `larkspur_bytes_free`. `bytes` is null where there is nothing.
typedef struct {
  uint8_t *bytes;
  size_t count;
} larkspur_bytes;

void larkspur_bytes_free(larkspur_bytes bytes);

// MARK: - One configuration

typedef struct {
  int minimum_version, maximum_version;  // TLS1_2_VERSION, TLS1_3_VERSION
  // DHE and static RSA beside ECDHE.
  bool allows_legacy_key_exchange;
} larkspur_tls_settings;

// A client's context with everything fixed that no user chooses, and a reference to `store`. Where the system's configuration of
// OpenSSL is stricter than `settings`, it counts. Null: the error queue says why.
SSL_CTX *larkspur_tls_context(const larkspur_tls_settings *settings, X509_STORE *store);
// Appends the secrets of all connections to a file, which nobody but its owner may have access to. Null: done; or else why not.
const char *larkspur_tls_context_log_keys(SSL_CTX *context, const char *path);
// The client's certificate, the ones behind it, its key. 0: they do not fit.
int larkspur_tls_context_use_identity(SSL_CTX *context, X509 *leaf, EVP_PKEY *key, STACK_OF(X509) *chain);

// How chains are verified, in a handshake or outside of one.
void larkspur_verification_rules(X509_VERIFY_PARAM *rules);
// The part of them that holds for whatever is verified against the store.
void larkspur_store_rules(X509_STORE *store);
// The verification callback of all stores: forgives what RFC 5280 6.1 does not ask for.
int larkspur_forgive(int is_good, X509_STORE_CTX *context);

// The host that a certificate has to be for: a name in lower case without a dot at its end, an address, or any (neither).
typedef struct {
  char name[254];  // RFC 1035 2.3.4: 253 bytes at most
  uint8_t address[16];
  uint8_t address_count;
} larkspur_host;

// Sets the host from a name or an address in text; the other is NULL. Returns false if the text is neither.
bool larkspur_host_set(larkspur_host *host, const char *name, const char *address);

// MARK: - One connection

typedef struct larkspur_tls larkspur_tls;

typedef enum {
  larkspur_tls_done,
  // Ciphertext has to come first.
  larkspur_tls_wants_input,
  // The room for ciphertext is used up.
  larkspur_tls_wants_output,
  // The server's certificates are there: see `larkspur_tls_verification`, answer by `larkspur_tls_decide`.
  larkspur_tls_wants_trust,
  // The server asks for a certificate: answer by `larkspur_tls_identify`.
  larkspur_tls_wants_identity,
  // The peer has said that no more comes.
  larkspur_tls_closed,
  // See `larkspur_tls_failure`.
  larkspur_tls_failed,
} larkspur_tls_status;

// What is lent for one call: ciphertext that has come, and room for ciphertext to send.
typedef struct {
  const uint8_t *input;
  size_t input_count;
  uint8_t *output;
  size_t output_room;
  // Nothing comes behind the input.
  bool input_ended;
} larkspur_tls_flow;

typedef struct {
  larkspur_tls_status status;
  size_t input_used, output_used;
  // Plaintext read or written.
  size_t plain_count;
} larkspur_tls_result;

typedef enum {
  larkspur_tls_group_sound,
  larkspur_tls_group_too_large,
  larkspur_tls_group_not_of_safe_prime,
} larkspur_tls_group;

typedef struct {
  // The first error in the queue, or 0.
  unsigned long code;
  // The alert that the peer sent, or -1.
  int alert;
  // The server asked for a certificate, and one was sent.
  bool identity_requested, identity_sent;
  // The peer is gone without close_notify.
  bool truncated;
  // The server had chosen a cipher.
  bool saw_server_hello;
  // Why the group of a finite-field key exchange was refused.
  larkspur_tls_group group;
} larkspur_tls_failure_details;

// Beside OpenSSL's X509_V_...: a certificate's key is larger than is computed with.
enum { larkspur_v_key_too_large = 1001 };

typedef struct {
  int error, depth;           // X509_V_... or larkspur_v_...
  STACK_OF(X509) * sent;      // as the server sent it, leaf first; the caller's
  STACK_OF(X509) * verified;  // leaf to root, as far as one was found; the caller's
  larkspur_bytes complaint;   // which file of roots could not be read, and why; the caller's
} larkspur_tls_verification_result;

// Verifies by the rules of `context`. The result's `sent` stays null. The error queue is empty afterwards.
larkspur_tls_verification_result larkspur_verify_chain(X509_STORE_CTX *context, const larkspur_host *host);

// Null: out of memory. `asks_identity`: suspend when the server asks for a certificate.
larkspur_tls *larkspur_tls_new(SSL_CTX *context, bool asks_identity);
void larkspur_tls_free(larkspur_tls *tls);
SSL *larkspur_tls_ssl(const larkspur_tls *tls);
// The name for SNI, or null; the name or the address (text) that the certificate has to be for, one of them null. 0: not usable.
int larkspur_tls_set_server(larkspur_tls *tls, const char *name, const char *address, int64_t date);
// Offers a session. It is not taken over.
int larkspur_tls_offer(larkspur_tls *tls, SSL_SESSION *session);

// Lets OpenSSL keep what it reads and writes records in, 16 KiB each, from one record to the next.
void larkspur_tls_keep_buffers(larkspur_tls *tls);

larkspur_tls_result larkspur_tls_handshake(larkspur_tls *tls, larkspur_tls_flow flow);
larkspur_tls_result larkspur_tls_read(larkspur_tls *tls, larkspur_tls_flow flow, void *plain, size_t room);
larkspur_tls_result larkspur_tls_write(larkspur_tls *tls, larkspur_tls_flow flow, const void *plain, size_t count);
larkspur_tls_result larkspur_tls_shut_down(larkspur_tls *tls, larkspur_tls_flow flow);

larkspur_tls_verification_result larkspur_tls_take_verification(larkspur_tls *tls);
// X509_V_OK accepts; anything else is the reason why not.
void larkspur_tls_decide(larkspur_tls *tls, int error);
// Goes on with the identity, or without one (null). 0: it does not fit.
int larkspur_tls_identify(larkspur_tls *tls, X509 *leaf, EVP_PKEY *key, STACK_OF(X509) *chain);
larkspur_tls_failure_details larkspur_tls_failure(const larkspur_tls *tls);
// The oldest session that the server gave and that has not been taken, or null; the caller's.
SSL_SESSION *larkspur_tls_take_session(larkspur_tls *tls);
// Lent as long as the connection lives.
size_t larkspur_tls_alpn(const larkspur_tls *tls, const uint8_t **name);
size_t larkspur_tls_stapled_response(const larkspur_tls *tls, const uint8_t **response);
// The distinguished names (RFC 2253, and DER) of the issuers that the server would take a certificate from.
int larkspur_tls_acceptable_issuers(const larkspur_tls *tls);
larkspur_bytes larkspur_tls_acceptable_issuer(const larkspur_tls *tls, int index);
larkspur_bytes larkspur_tls_acceptable_issuer_der(const larkspur_tls *tls, int index);

// MARK: - Certificates

// Whether the text is an IPv4 address. Each has one form only: four decimal numbers without leading zeros.
bool larkspur_is_ipv4_address(const char *text);
// The IPv6 address that the text is, in its one canonical form. Nothing: it is none.
larkspur_bytes larkspur_canonical_ipv6_address(const char *text);

int larkspur_chain_count(const STACK_OF(X509) *chain);
X509 *larkspur_chain_at(const STACK_OF(X509) *chain, int index);
STACK_OF(X509) *larkspur_chain_new(void);
// Keeps a reference of its own. 0: out of memory.
int larkspur_chain_append(STACK_OF(X509) *chain, X509 *certificate);
void larkspur_chain_free(STACK_OF(X509) *chain);

larkspur_bytes larkspur_certificate_der(const X509 *certificate);
larkspur_bytes larkspur_certificate_spki(const X509 *certificate);
// RFC 2253, in UTF-8.
larkspur_bytes larkspur_name_text(const X509_NAME *name);
larkspur_bytes larkspur_name_der(const X509_NAME *name);
larkspur_bytes larkspur_certificate_serial(const X509 *certificate);
// Seconds since 1970; INT64_MIN: not readable.
int64_t larkspur_seconds(const ASN1_TIME *time);
int64_t larkspur_certificate_not_before(const X509 *certificate);
int64_t larkspur_certificate_not_after(const X509 *certificate);
GENERAL_NAMES *larkspur_certificate_names(const X509 *certificate);
int larkspur_names_count(const GENERAL_NAMES *names);
// GEN_DNS or GEN_IPADD and its bytes, lent; -1 for names of another kind.
int larkspur_names_at(const GENERAL_NAMES *names, int index, const uint8_t **bytes, size_t *count);
// Whether the certificate says that its server always staples (RFC 7633).
bool larkspur_certificate_must_staple(const X509 *certificate);

// Verifies a chain outside of a handshake. `name` or `address` may be null: then any will do. With `any_anchor` a chain may
// end at any certificate of the store, not only at one that is its own issuer.
larkspur_tls_verification_result larkspur_verify(X509_STORE *store, STACK_OF(X509) *sent, const char *name,
                                                 const char *address, int64_t date, bool any_anchor);

typedef enum {
  larkspur_ocsp_good,
  // The responder had nothing to say (it was busy, say).
  larkspur_ocsp_none,
  larkspur_ocsp_revoked,
  // Not for this certificate, or its status is unknown.
  larkspur_ocsp_unknown,
  larkspur_ocsp_outdated,
  larkspur_ocsp_malformed,
  // Not signed by who may.
  larkspur_ocsp_untrusted,
} larkspur_ocsp_status;

// Checks a stapled response for the first certificate of a verified chain.
larkspur_ocsp_status larkspur_check_stapled_response(const uint8_t *response, size_t count, STACK_OF(X509) *verified,
                                                     X509_STORE *store, int64_t date);

// MARK: - Files

// Certificates in PEM, or one in DER, and the number of blocks that cannot be read. Returns NULL if no
// certificate can be read.
STACK_OF(X509) *larkspur_read_certificates(const void *bytes, size_t count, int *damaged);
// Lets the store look for roots in the folder that SSL_CERT_DIR names, or else in OpenSSL's own, when they are wanted. 0: out of
// memory.
int larkspur_add_root_folders(X509_STORE *store);
// Adds the roots of the file that SSL_CERT_FILE names, or else of OpenSSL's own. Returns empty bytes on success, or else a
// sentence that names the file and the error. A missing file of OpenSSL's own is no fault where there is a folder.
larkspur_bytes larkspur_add_root_file(X509_STORE *store);
// What the system says about something that failed: "what: words".
larkspur_bytes larkspur_system_complaint(const char *what, int error);
// Revocation lists in PEM or one in DER, into the store. The number of them; -1: one cannot be read.
int larkspur_read_revocation_lists(X509_STORE *store, const void *bytes, size_t count);

typedef enum {
  larkspur_secret_unreadable,
  larkspur_secret_wants_password,
  // Encrypted or protected by an algorithm that OpenSSL does not have here.
  larkspur_secret_unsupported,
} larkspur_secret_failure;

// A private key in PEM or DER. `password` may be null.
EVP_PKEY *larkspur_read_key(const void *bytes, size_t count, const char *password, larkspur_secret_failure *failure);
// 0: it cannot be read.
int larkspur_read_pkcs12(const void *bytes, size_t count, const char *password, X509 **leaf, EVP_PKEY **key,
                         STACK_OF(X509) **chain, larkspur_secret_failure *failure);

static inline int larkspur_session_version(const SSL_SESSION *session) {
  return SSL_SESSION_get_protocol_version(session);
}

static inline const char *larkspur_error_reason(unsigned long code) { return ERR_reason_error_string(code); }
static inline int larkspur_error_library(unsigned long code) { return ERR_GET_LIB(code); }
static inline int larkspur_error_code_reason(unsigned long code) { return ERR_GET_REASON(code); }

#endif
