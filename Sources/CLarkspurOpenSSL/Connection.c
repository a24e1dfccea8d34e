#ifdef __linux__
// One TLS connection over memory that Swift lends for each call.
//
// Theory of operation. OpenSSL reads and writes through a custom BIO, whose data is the flow of the current call.
// Ciphertext is copied once: from the receive buffer into OpenSSL's record buffer, or from the record buffer into the
// send buffer. OpenSSL's memory BIO would copy it twice and keep it.
//
// Swift makes two decisions of a handshake: whether the server is trusted, and which certificate the client sends. The
// callbacks suspend the handshake. Swift then decides and calls again.
#include "CLarkspurOpenSSL.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

// At the end of the process (exit, or a return from main), OpenSSL by default frees its shared state, and a thread that
// still uses OpenSSL crashes. The first call of all can prevent that. The kernel reclaims the memory in any case.
__attribute__((constructor)) static void stay_until_the_end(void) {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

// TLS 1.3 servers usually send two tickets. If a server sends many, only the last ones are kept.
enum { sessions_max = 4 };

struct larkspur_tls {
  SSL *ssl;
  larkspur_tls_flow flow;
  size_t input_used, output_used;
  // The end of the connection that a read found behind plaintext. The read delivers the plaintext first.
  larkspur_tls_status ending;
  bool has_ended;

  bool has_decided;
  int decision;
  larkspur_host host;
  larkspur_tls_verification_result verification;

  bool asks_identity, has_identified;
  larkspur_tls_failure_details failure;

  SSL_SESSION *sessions[sessions_max];
  int session_count;
};

// MARK: - The BIO

static int flow_read(BIO *bio, char *bytes, int count) {
  larkspur_tls *tls = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  size_t left = tls->flow.input_count - tls->input_used;
  if (count <= 0) return 0;
  if (left == 0) {
    if (tls->flow.input_ended) return 0;
    BIO_set_retry_read(bio);
    return -1;
  }
  size_t taken = left < (size_t)count ? left : (size_t)count;
  memcpy(bytes, tls->flow.input + tls->input_used, taken);
  tls->input_used += taken;
  return (int)taken;
}

static int flow_write(BIO *bio, const char *bytes, int count) {
  larkspur_tls *tls = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  size_t room = tls->flow.output_room - tls->output_used;
  if (count <= 0) return 0;
  if (room == 0) {
    BIO_set_retry_write(bio);
    return -1;
  }
  size_t taken = room < (size_t)count ? room : (size_t)count;
  memcpy(tls->flow.output + tls->output_used, bytes, taken);
  tls->output_used += taken;
  return (int)taken;
}

static long flow_control(BIO *bio, int command, long number, void *pointer) {
  (void)number, (void)pointer;
  // Performance: OpenSSL calls this dozens of times in a handshake, mostly for properties of sockets.
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command != BIO_CTRL_EOF) return 0;
  const larkspur_tls *tls = BIO_get_data(bio);
  return tls && tls->flow.input_ended && tls->input_used == tls->flow.input_count;
}

static BIO_METHOD *flow_method;
static CRYPTO_ONCE flow_method_once = CRYPTO_ONCE_STATIC_INIT;

static void make_flow_method(void) {
  BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "larkspur");
  if (!method) return;
  BIO_meth_set_read(method, flow_read);
  BIO_meth_set_write(method, flow_write);
  BIO_meth_set_ctrl(method, flow_control);
  flow_method = method;
}

static BIO *new_flow_bio(larkspur_tls *tls) {
  if (CRYPTO_THREAD_run_once(&flow_method_once, make_flow_method) != 1 || !flow_method) return NULL;
  BIO *bio = BIO_new(flow_method);
  if (!bio) return NULL;
  BIO_set_data(bio, tls);
  BIO_set_init(bio, 1);
  return bio;
}

// MARK: - Callbacks

static larkspur_tls *of(const SSL *ssl) { return SSL_get_app_data(ssl); }

static void drop_verification(larkspur_tls *tls) {
  larkspur_chain_free(tls->verification.sent);
  larkspur_chain_free(tls->verification.verified);
  free(tls->verification.complaint);
  tls->verification = (larkspur_tls_verification_result){0};
}

// Verifies the chain and suspends the handshake on the first call. Returns the decision on the second call.
static int verify(X509_STORE_CTX *context, void *unused) {
  (void)unused;
  SSL *ssl = X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx());
  larkspur_tls *tls = of(ssl);
  if (tls->has_decided) {
    X509_STORE_CTX_set_error(context, tls->decision);
    return tls->decision == X509_V_OK;
  }
  drop_verification(tls);
  tls->verification = larkspur_verify_chain(context, &tls->host);
  tls->verification.sent = X509_chain_up_ref(X509_STORE_CTX_get0_untrusted(context));
  return SSL_set_retry_verify(ssl);
}

static int certificate_requested(SSL *ssl, void *unused) {
  (void)unused;
  larkspur_tls *tls = of(ssl);
  tls->failure.identity_requested = true;
  if (tls->asks_identity && !tls->has_identified) return -1;
  tls->failure.identity_sent = SSL_get_certificate(ssl) != NULL;
  return 1;
}

static int session_given(SSL *ssl, SSL_SESSION *session) {
  larkspur_tls *tls = of(ssl);
  if (!tls) return 0;
  if (tls->session_count == sessions_max) {
    SSL_SESSION_free(tls->sessions[0]);
    memmove(tls->sessions, tls->sessions + 1, sizeof tls->sessions - sizeof *tls->sessions);
    tls->session_count--;
  }
  tls->sessions[tls->session_count++] = session;
  return 1;  // keeps the reference
}

// MARK: - Key exchange

// Maximum size of a group. A larger group is no safer than the certificate that signs it, and computing with it delays
// the whole loop: 60 ms for 4,096 bits, 850 ms for 10,000 bits.
enum { group_bits_max = 4096 };

// Fermat's test. An honest server's group needs no better test, and a dishonest server harms only its own connections.
static bool seems_prime(const BIGNUM *number, BN_CTX *scratch) {
  BIGNUM *base = BN_new(), *exponent = BN_dup(number), *power = BN_new();
  bool result = base && exponent && power && BN_set_word(base, 3) && BN_sub_word(exponent, 1) &&
                BN_mod_exp(power, base, exponent, number, scratch) && BN_is_one(power);
  BN_free(base);
  BN_free(exponent);
  BN_free(power);
  return result;
}

// Whether the group's prime p is a safe prime: (p - 1) / 2 is prime, too, so there is no small subgroup.
static bool is_of_safe_prime(EVP_PKEY *key) {
  char name[32];
  // The groups of RFC 7919 and RFC 3526 need no test. Those of RFC 5114 have names, too, but their primes are not safe.
  if (EVP_PKEY_get_group_name(key, name, sizeof name, NULL) == 1 &&
      (strncmp(name, "ffdhe", 5) == 0 || strncmp(name, "modp_", 5) == 0))
    return true;
  BIGNUM *prime = NULL, *half = NULL;
  BN_CTX *scratch = BN_CTX_new();
  bool is_safe = scratch && EVP_PKEY_get_bn_param(key, "p", &prime) == 1 && BN_is_odd(prime) && (half = BN_new()) &&
                 BN_rshift1(half, prime) && seems_prime(prime, scratch) && seems_prime(half, scratch);
  BN_free(prime);
  BN_free(half);
  BN_CTX_free(scratch);
  return is_safe;
}

// Notes that the group in a ServerKeyExchange of TLS 1.2 (RFC 5246 7.4.3) is too large, before OpenSSL checks it. For a
// group beyond 10,000 bits OpenSSL reports only a bad value.
static void note_message(int is_sent, int version, int type, const void *content, size_t count, SSL *ssl, void *unused) {
  (void)version, (void)unused;
  const uint8_t *bytes = content;
  larkspur_tls *tls = of(ssl);
  if (is_sent || type != SSL3_RT_HANDSHAKE || count < 7 || bytes[0] != SSL3_MT_SERVER_KEY_EXCHANGE || !tls) return;
  const SSL_CIPHER *cipher = SSL_get_pending_cipher(ssl);
  if (!cipher || SSL_CIPHER_get_kx_nid(cipher) != NID_kx_dhe) return;
  // Four bytes of the message's head, and then two bytes with the prime's length.
  size_t length = (size_t)bytes[4] << 8 | bytes[5], first = 6;
  if (length > count - first) return;
  while (length > 0 && bytes[first] == 0) first++, length--;
  if (length > group_bits_max / 8) tls->failure.group = larkspur_tls_group_too_large;
}

// Whether a key exchange may be offered and accepted, within the limits of OpenSSL's policy and the system's. By
// default only ECDHE is allowed. `legacy` is not null if the caller also allows DHE and static RSA.
static bool allows_key_exchange(const SSL *ssl, int operation, void *subject, const void *legacy) {
  switch (operation) {
  case SSL_SECOP_CIPHER_SUPPORTED:
  case SSL_SECOP_CIPHER_SHARED:
  case SSL_SECOP_CIPHER_CHECK:
    switch (SSL_CIPHER_get_kx_nid(subject)) {
    case NID_kx_ecdhe:
    // In TLS 1.3 the group decides.
    case NID_kx_any: return true;
    case NID_kx_dhe:
    case NID_kx_rsa: return legacy != NULL;
    default: return false;
    }
  case SSL_SECOP_CURVE_SUPPORTED:
  case SSL_SECOP_CURVE_SHARED:
  case SSL_SECOP_CURVE_CHECK: {
    // The numbers of finite-field groups begin at 0x0100, with 2048, 3072 and 4096 bits (RFC 7919 2).
    const uint8_t *number = subject;
    return number[0] != 1 || (legacy && number[1] <= 2);
  }
  case SSL_SECOP_TMP_DH: {
    larkspur_tls *tls = ssl ? of(ssl) : NULL;
    if (!tls || tls->failure.group != larkspur_tls_group_sound) return false;
    if (is_of_safe_prime(subject)) return true;
    tls->failure.group = larkspur_tls_group_not_of_safe_prime;
    return false;
  }
  default: return true;
  }
}

typedef int (*security_callback)(const SSL *, const SSL_CTX *, int, int, int, void *, void *);
// OpenSSL's default callback, which applies the security level.
static security_callback level_callback;

// The security callback. OpenSSL calls it before it offers, accepts or computes anything.
static int allows(const SSL *ssl, const SSL_CTX *context, int operation, int bits, int number, void *subject,
                  void *legacy) {
  // The security level is checked first, so a group that is too small is not tested.
  return level_callback(ssl, context, operation, bits, number, subject, NULL) &&
         allows_key_exchange(ssl, operation, subject, legacy);
}

static int level = 2;
static CRYPTO_ONCE level_once = CRYPTO_ONCE_STATIC_INIT;

// A new context has the settings of the system's configuration of OpenSSL.
static void find_level(void) {
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  if (context && SSL_CTX_get_security_level(context) > level) level = SSL_CTX_get_security_level(context);
  if (context) level_callback = SSL_CTX_get_security_callback(context);
  SSL_CTX_free(context);
}

// The security level: 2 (112 bits: no RSA below 2048 bits, no SHA-1), or the system's level if that is stricter.
static int security_level(void) {
  return CRYPTO_THREAD_run_once(&level_once, find_level) == 1 ? level : 2;
}

// MARK: - The context

void larkspur_verification_rules(X509_VERIFY_PARAM *rules) {
  // RFC 5280 to the letter, because lenient readings have led to attacks.
  X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_X509_STRICT | X509_V_FLAG_TRUSTED_FIRST);
  X509_VERIFY_PARAM_clear_flags(rules, X509_V_FLAG_PARTIAL_CHAIN);
  X509_VERIFY_PARAM_set_purpose(rules, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set_trust(rules, X509_TRUST_SSL_SERVER);
  X509_VERIFY_PARAM_set_auth_level(rules, security_level());
  // Maximum number of intermediates, as in GnuTLS. Real chains have three, and each signature takes time on the loop.
  X509_VERIFY_PARAM_set_depth(rules, 16);
}

void larkspur_store_rules(X509_STORE *store) {
  X509_STORE_set_verify_cb(store, larkspur_forgive);
  X509_VERIFY_PARAM *rules = X509_STORE_get0_param(store);
  X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_X509_STRICT);
  X509_VERIFY_PARAM_set_auth_level(rules, security_level());
}

// The stricter of the given version and the system's, which is 0 if it is not set.
static int stricter_minimum(SSL_CTX *context, int version) {
  int system = (int)SSL_CTX_get_min_proto_version(context);
  return system > version ? system : version;
}

static int stricter_maximum(SSL_CTX *context, int version) {
  int system = (int)SSL_CTX_get_max_proto_version(context);
  return system != 0 && system < version ? system : version;
}

SSL_CTX *larkspur_tls_context(int minimum_version, int maximum_version, bool allows_legacy, X509_STORE *store) {
  static const unsigned char protocols[] = "\x08http/1.1";
  security_level();
  SSL_CTX *context = level_callback ? SSL_CTX_new(TLS_client_method()) : NULL;
  if (!context) return NULL;
  SSL_CTX_set1_cert_store(context, store);
  static int is_legacy;
  SSL_CTX_set_security_level(context, security_level());
  SSL_CTX_set_security_callback(context, allows);
  if (allows_legacy) {
    SSL_CTX_set0_security_ex_data(context, &is_legacy);
    SSL_CTX_set_msg_callback(context, note_message);
  }
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_clear_options(context, SSL_OP_LEGACY_SERVER_CONNECT | SSL_OP_IGNORE_UNEXPECTED_EOF);
  // OpenSSL frees the buffers of an idle connection. After an incomplete write, the bytes may be passed again from
  // another address.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set_cert_verify_callback(context, verify, NULL);
  SSL_CTX_set_cert_cb(context, certificate_requested, NULL);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, session_given);
  SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp);
  larkspur_verification_rules(SSL_CTX_get0_param(context));
  int minimum = stricter_minimum(context, minimum_version);
  int maximum = stricter_maximum(context, maximum_version);
  if (SSL_CTX_set_min_proto_version(context, minimum) != 1 || SSL_CTX_set_max_proto_version(context, maximum) != 1 ||
      SSL_CTX_set_alpn_protos(context, protocols, sizeof protocols - 1) != 0) {
    SSL_CTX_free(context);
    return NULL;
  }
  return context;
}

int larkspur_tls_context_use_identity(SSL_CTX *context, X509 *leaf, EVP_PKEY *key, STACK_OF(X509) *chain) {
  return SSL_CTX_use_cert_and_key(context, leaf, key, chain, 1);
}

// MARK: - The connection

larkspur_tls *larkspur_tls_new(SSL_CTX *context, bool asks_identity) {
  larkspur_tls *tls = calloc(1, sizeof *tls);
  if (!tls) return NULL;
  tls->asks_identity = asks_identity;
  tls->failure.alert = -1;
  tls->ssl = SSL_new(context);
  BIO *bio = tls->ssl ? new_flow_bio(tls) : NULL;
  if (!bio || !SSL_set_app_data(tls->ssl, tls)) {
    BIO_free(bio);
    larkspur_tls_free(tls);
    return NULL;
  }
  SSL_set_bio(tls->ssl, bio, bio);
  SSL_set_connect_state(tls->ssl);
  return tls;
}

void larkspur_tls_free(larkspur_tls *tls) {
  if (!tls) return;
  if (tls->ssl) {
    // Without this, OpenSSL would not let the session be resumed after a connection without an orderly end.
    SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_set_app_data(tls->ssl, NULL);
    SSL_free(tls->ssl);
  }
  drop_verification(tls);
  while (tls->session_count > 0) SSL_SESSION_free(tls->sessions[--tls->session_count]);
  free(tls);
}

SSL *larkspur_tls_ssl(const larkspur_tls *tls) { return tls->ssl; }

int larkspur_tls_set_server(larkspur_tls *tls, const char *name, const char *address, int64_t date) {
  X509_VERIFY_PARAM_set_time(SSL_get0_param(tls->ssl), (time_t)date);
  if (!larkspur_host_set(&tls->host, name, address)) return 0;
  return address || SSL_set_tlsext_host_name(tls->ssl, name) == 1;
}

int larkspur_tls_offer(larkspur_tls *tls, SSL_SESSION *session) { return SSL_set_session(tls->ssl, session); }

static void begin(larkspur_tls *tls, const larkspur_tls_flow *flow) {
  tls->flow = *flow;
  tls->input_used = tls->output_used = 0;
  // Errors that other code on this thread left in the queue must not be taken for errors of this call. Performance:
  // looking is cheaper than clearing.
  if (ERR_peek_error() != 0) ERR_clear_error();
}

static void end(larkspur_tls *tls, larkspur_tls_result *result, larkspur_tls_status status, size_t plain_count) {
  *result = (larkspur_tls_result){status, tls->input_used, tls->output_used, plain_count};
  // Keeps no pointer to the lent memory.
  tls->flow = (larkspur_tls_flow){0};
}

// Takes the deciding error out of the queue: the first one of the TLS library, or else the first one. The libraries
// beneath TLS may have added theirs earlier.
static unsigned long take_error(void) {
  unsigned long first = ERR_peek_error(), code;
  while ((code = ERR_get_error()) != 0)
    if (ERR_GET_LIB(code) == ERR_LIB_SSL) break;
  ERR_clear_error();
  return code != 0 ? code : first;
}

static larkspur_tls_status status_of(larkspur_tls *tls, int returned) {
  switch (SSL_get_error(tls->ssl, returned)) {
    case SSL_ERROR_NONE: return larkspur_tls_done;
    case SSL_ERROR_WANT_READ: return larkspur_tls_needs_input;
    case SSL_ERROR_WANT_WRITE: return larkspur_tls_needs_output;
    case SSL_ERROR_WANT_RETRY_VERIFY: return larkspur_tls_needs_trust;
    case SSL_ERROR_WANT_X509_LOOKUP: return larkspur_tls_needs_identity;
    case SSL_ERROR_ZERO_RETURN: return larkspur_tls_closed;
    default: break;
  }
  unsigned long code = take_error();
  tls->failure.code = code;
  // A fatal alert of the peer is in the queue by its number. close_notify is not.
  int alert = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET : 0;
  if (alert > 0 && alert <= UINT8_MAX) tls->failure.alert = alert;
  tls->failure.saw_server_hello = SSL_get_pending_cipher(tls->ssl) != NULL;
  tls->failure.truncated =
      code == 0 || (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING);
  return larkspur_tls_failed;
}

void larkspur_tls_handshake(larkspur_tls *tls, const larkspur_tls_flow *flow, larkspur_tls_result *result) {
  begin(tls, flow);
  int returned = SSL_do_handshake(tls->ssl);
  end(tls, result, returned == 1 ? larkspur_tls_done : status_of(tls, returned), 0);
}

// Frees the record buffer of 16 KiB. In spite of SSL_MODE_RELEASE_BUFFERS, OpenSSL keeps it while it waits for a
// record's header. "RH" means that no record has begun. Between a record's header and its body, versions before 3.0.14
// free memory that is in use (CVE-2024-4741).
static void free_record_buffer(larkspur_tls *tls, larkspur_tls_status status) {
  if (status == larkspur_tls_needs_input && strcmp(SSL_rstate_string(tls->ssl), "RH") == 0) SSL_free_buffers(tls->ssl);
}

void larkspur_tls_keep_buffers(larkspur_tls *tls) { SSL_clear_mode(tls->ssl, SSL_MODE_RELEASE_BUFFERS); }

void larkspur_tls_read(larkspur_tls *tls, const larkspur_tls_flow *flow,
                       larkspur_tls_result *result, void *plain, size_t room) {
  begin(tls, flow);
  if (tls->has_ended) {
    end(tls, result, tls->ending, 0);
    return;
  }
  size_t total = 0;
  larkspur_tls_status status = larkspur_tls_done;
  while (total < room) {
    size_t count = 0;
    int returned = SSL_read_ex(tls->ssl, (char *)plain + total, room - total, &count);
    total += count;
    if (returned != 1) {
      status = status_of(tls, returned);
      free_record_buffer(tls, status);
      break;
    }
    // Another read would find nothing, and would allocate a record buffer. The last record was read completely, so its
    // buffer is free.
    if (tls->input_used == tls->flow.input_count && !tls->flow.input_ended && !SSL_has_pending(tls->ssl)) {
      status = larkspur_tls_needs_input;
      break;
    }
  }
  if (status == larkspur_tls_closed || status == larkspur_tls_failed) {
    tls->has_ended = true;
    tls->ending = status;
    if (total > 0) status = larkspur_tls_done;
  }
  end(tls, result, status, total);
}

void larkspur_tls_write(larkspur_tls *tls, const larkspur_tls_flow *flow,
                        larkspur_tls_result *result, const void *plain, size_t count) {
  begin(tls, flow);
  size_t written = 0;
  int returned = SSL_write_ex(tls->ssl, plain, count, &written);
  end(tls, result, returned == 1 ? larkspur_tls_done : status_of(tls, returned), written);
}

void larkspur_tls_shut_down(larkspur_tls *tls, const larkspur_tls_flow *flow, larkspur_tls_result *result) {
  begin(tls, flow);
  SSL_shutdown(tls->ssl);
  ERR_clear_error();
  end(tls, result, larkspur_tls_done, 0);
}

// MARK: - Facts and decisions

void larkspur_tls_take_verification(larkspur_tls *tls, larkspur_tls_verification_result *result) {
  *result = tls->verification;
  tls->verification = (larkspur_tls_verification_result){0};
}

void larkspur_tls_decide(larkspur_tls *tls, int error) {
  tls->has_decided = true;
  tls->decision = error;
}

int larkspur_tls_identify(larkspur_tls *tls, X509 *leaf, EVP_PKEY *key, STACK_OF(X509) *chain) {
  tls->has_identified = true;
  return !leaf || SSL_use_cert_and_key(tls->ssl, leaf, key, chain, 1);
}

void larkspur_tls_failure(const larkspur_tls *tls, larkspur_tls_failure_details *details) { *details = tls->failure; }

int larkspur_error_library(unsigned long code) { return ERR_GET_LIB(code); }
int larkspur_error_code_reason(unsigned long code) { return ERR_GET_REASON(code); }

SSL_SESSION *larkspur_tls_take_session(larkspur_tls *tls) {
  if (tls->session_count == 0) return NULL;
  SSL_SESSION *oldest = tls->sessions[0];
  memmove(tls->sessions, tls->sessions + 1, (size_t)--tls->session_count * sizeof *tls->sessions);
  return oldest;
}

size_t larkspur_tls_alpn(const larkspur_tls *tls, const uint8_t **name) {
  unsigned count = 0;
  SSL_get0_alpn_selected(tls->ssl, name, &count);
  return count;
}

size_t larkspur_tls_stapled_response(const larkspur_tls *tls, const uint8_t **response) {
  unsigned char *bytes = NULL;
  long count = SSL_get_tlsext_status_ocsp_resp(tls->ssl, &bytes);
  *response = bytes;
  return bytes && count > 0 ? (size_t)count : 0;
}

int larkspur_tls_acceptable_issuers(const larkspur_tls *tls) {
  const STACK_OF(X509_NAME) *names = SSL_get0_peer_CA_list(tls->ssl);
  return names ? sk_X509_NAME_num(names) : 0;
}

larkspur_bytes *larkspur_tls_acceptable_issuer(const larkspur_tls *tls, int index) {
  const STACK_OF(X509_NAME) *names = SSL_get0_peer_CA_list(tls->ssl);
  return larkspur_name_text(names ? sk_X509_NAME_value(names, index) : NULL);
}

larkspur_bytes *larkspur_tls_acceptable_issuer_der(const larkspur_tls *tls, int index) {
  const STACK_OF(X509_NAME) *names = SSL_get0_peer_CA_list(tls->ssl);
  return larkspur_name_der(names ? sk_X509_NAME_value(names, index) : NULL);
}
#endif
