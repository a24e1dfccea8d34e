#ifdef __linux__
// The TLS settings of a test server.
#include "ServerSession.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/dh.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/x509.h>

static int copy(const uint8_t *bytes, size_t count, uint8_t **out, size_t *out_count) {
  uint8_t *copied = malloc(count ? count : 1);
  if (!copied) return 0;
  if (count) memcpy(copied, bytes, count);
  free(*out);
  *out = copied;
  *out_count = count;
  return 1;
}

// Returns the next certificate, which the caller frees, or NULL if there is no readable certificate.
static X509 *next_certificate(const uint8_t **at, const uint8_t *end) {
  return *at < end ? d2i_X509(NULL, at, (long)(end - *at)) : NULL;
}

// MARK: Callbacks

// Accepts any certificate.
static int accept_certificate(X509_STORE_CTX *store, void *argument) {
  (void)argument;
  X509_STORE_CTX_set_error(store, X509_V_OK);
  return 1;
}

static int staple(SSL *ssl, void *argument) {
  struct larkspur_server_context *context = argument;
  if (!context->stapled_response) return SSL_TLSEXT_ERR_NOACK;
  uint8_t *response = OPENSSL_memdup(context->stapled_response, context->stapled_response_count);
  if (!response) return SSL_TLSEXT_ERR_NOACK;
  SSL_set_tlsext_status_ocsp_resp(ssl, response, (long)context->stapled_response_count);
  return SSL_TLSEXT_ERR_OK;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_count, const unsigned char *offered,
                           unsigned int offered_count, void *argument) {
  (void)ssl;
  struct larkspur_server_context *context = argument;
  if (context->alpn_mode == LARKSPUR_SERVER_ALPN_IGNORE || context->alpn_count == 0) return SSL_TLSEXT_ERR_NOACK;
  if (context->alpn_mode == LARKSPUR_SERVER_ALPN_ANSWER) {
    *out = context->alpn + 1;
    *out_count = context->alpn[0];
    return SSL_TLSEXT_ERR_OK;
  }
  unsigned char *chosen = NULL;
  if (SSL_select_next_proto(&chosen, out_count, context->alpn, (unsigned int)context->alpn_count, offered,
                            offered_count) == OPENSSL_NPN_NEGOTIATED) {
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
  }
  return context->alpn_mode == LARKSPUR_SERVER_ALPN_INSIST ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_NOACK;
}

static int read_hello(SSL *ssl, int *alert, void *argument) {
  (void)argument;
  struct larkspur_server_session *session = SSL_get_app_data(ssl);
  if (!session) return SSL_CLIENT_HELLO_SUCCESS;
  const unsigned char *bytes = NULL;
  size_t count = SSL_client_hello_get0_ciphers(ssl, &bytes);
  copy(bytes, count, &session->ciphers_offered, &session->ciphers_offered_count);
  // RFC 6066, section 3: the list's length, the name's type (0), the name's length, the name.
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &bytes, &count) && count > 5 && bytes[2] == 0) {
    size_t length = (size_t)bytes[3] << 8 | bytes[4];
    if (length <= count - 5) copy(bytes + 5, length, &session->server_name, &session->server_name_count);
  }
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &bytes, &count) && count > 2)
    copy(bytes + 2, count - 2, &session->alpn_offered, &session->alpn_offered_count);
  int *types = NULL;
  if (SSL_client_hello_get1_extensions_present(ssl, &types, &count) && count <= 1000) {
    uint8_t pairs[2000];
    for (size_t index = 0; index < count; index++) {
      pairs[2 * index] = (uint8_t)(types[index] >> 8);
      pairs[2 * index + 1] = (uint8_t)types[index];
    }
    copy(pairs, 2 * count, &session->extensions_offered, &session->extensions_offered_count);
  }
  OPENSSL_free(types);
  if (session->refusal < 0) return SSL_CLIENT_HELLO_SUCCESS;
  *alert = session->refusal;
  return SSL_CLIENT_HELLO_ERROR;
}

static void note(const SSL *ssl, int where, int value) {
  struct larkspur_server_session *session = SSL_get_app_data(ssl);
  if (!session) return;
  if (!(where & SSL_CB_ALERT) || session->alert_count == LARKSPUR_ALERTS_MAX) return;
  uint8_t *alert = session->alerts + 3 * session->alert_count++;
  alert[0] = (where & SSL_CB_READ) != 0;
  alert[1] = (uint8_t)(value >> 8);
  alert[2] = (uint8_t)value;
}

// MARK: Creation

larkspur_server_context *larkspur_server_context_create(void) {
  struct larkspur_server_context *context = calloc(1, sizeof *context);
  if (!context) return NULL;
  context->ssl = SSL_CTX_new(TLS_server_method());
  if (!context->ssl) {
    free(context);
    return NULL;
  }
  SSL_CTX_set_mode(context->ssl, SSL_MODE_NO_AUTO_CHAIN | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // OpenSSL resumes sessions only under the identifier of the context in which they were created.
  SSL_CTX_set_session_id_context(context->ssl, (const unsigned char *)"larkspur", 8);
  SSL_CTX_set_client_hello_cb(context->ssl, read_hello, NULL);
  SSL_CTX_set_info_callback(context->ssl, note);
  SSL_CTX_set_alpn_select_cb(context->ssl, choose_protocol, context);
  SSL_CTX_set_tlsext_status_cb(context->ssl, staple);
  SSL_CTX_set_tlsext_status_arg(context->ssl, context);
  SSL_CTX_set_msg_callback(context->ssl, larkspur_writer_message);
  SSL_CTX_set_keylog_callback(context->ssl, larkspur_writer_keylog);
  return context;
}

void larkspur_server_context_free(larkspur_server_context *context) {
  if (!context) return;
  SSL_CTX_free(context->ssl);
  free(context->stapled_response);
  free(context->alpn);
  free(context);
}

// MARK: Settings

int larkspur_server_set_versions(larkspur_server_context *context, int min, int max) {
  return SSL_CTX_set_min_proto_version(context->ssl, min) == 1 && SSL_CTX_set_max_proto_version(context->ssl, max) == 1;
}

static int allow_everything(const SSL *ssl, const SSL_CTX *context, int operation, int bits, int nid, void *other,
                            void *argument) {
  (void)ssl, (void)context, (void)operation, (void)bits, (void)nid, (void)other, (void)argument;
  return 1;
}

void larkspur_server_set_security_level(larkspur_server_context *context, int level) {
  SSL_CTX_set_security_level(context->ssl, level);
  // OpenSSL's own level 0 refuses DH groups below 1024 bits.
  if (level <= 0) SSL_CTX_set_security_callback(context->ssl, allow_everything);
}

int larkspur_server_set_ciphers(larkspur_server_context *context, const char *list) {
  return SSL_CTX_set_cipher_list(context->ssl, list);
}

int larkspur_server_set_ciphersuites(larkspur_server_context *context, const char *list) {
  return SSL_CTX_set_ciphersuites(context->ssl, list);
}

int larkspur_server_set_groups(larkspur_server_context *context, const char *list) {
  return SSL_CTX_set1_groups_list(context->ssl, list) == 1;
}

int larkspur_server_set_signature_algorithms(larkspur_server_context *context, const char *list) {
  return SSL_CTX_set1_sigalgs_list(context->ssl, list) == 1;
}

// Returns a key with the private half of `key` and the certificate's public half, because OpenSSL accepts no key with
// another public half than the certificate's.
static EVP_PKEY *disguise(EVP_PKEY *key, EVP_PKEY *certified) {
  EVP_PKEY *disguised = NULL;
  BIGNUM *d = NULL, *n = NULL, *e = NULL;
  char group[80];
  uint8_t point[200];
  size_t point_count = 0;
  OSSL_PARAM *values = NULL;
  OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
  const char *kind = NULL;
  if (builder && EVP_PKEY_is_a(key, "EC") && EVP_PKEY_is_a(certified, "EC") &&
      EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PRIV_KEY, &d) &&
      EVP_PKEY_get_group_name(certified, group, sizeof group, NULL) &&
      EVP_PKEY_get_octet_string_param(certified, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point, &point_count) &&
      OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, group, 0) &&
      OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, point_count) &&
      OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, d))
    kind = "EC";
  if (builder && EVP_PKEY_is_a(key, "RSA") && EVP_PKEY_is_a(certified, "RSA") &&
      EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_D, &d) &&
      EVP_PKEY_get_bn_param(certified, OSSL_PKEY_PARAM_RSA_N, &n) &&
      EVP_PKEY_get_bn_param(certified, OSSL_PKEY_PARAM_RSA_E, &e) &&
      OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) &&
      OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) &&
      OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_D, d))
    kind = "RSA";
  EVP_PKEY_CTX *maker = kind ? EVP_PKEY_CTX_new_from_name(NULL, kind, NULL) : NULL;
  if (maker && (values = OSSL_PARAM_BLD_to_param(builder)) != NULL && EVP_PKEY_fromdata_init(maker) == 1)
    EVP_PKEY_fromdata(maker, &disguised, EVP_PKEY_KEYPAIR, values);
  EVP_PKEY_CTX_free(maker);
  OSSL_PARAM_free(values);
  OSSL_PARAM_BLD_free(builder);
  BN_clear_free(d);
  BN_free(n);
  BN_free(e);
  return disguised;
}

int larkspur_server_set_certificates(larkspur_server_context *context, const uint8_t *certificates, size_t count,
                                     const uint8_t *key, size_t key_count) {
  if (count > INT_MAX || key_count > INT_MAX) return 0;
  const uint8_t *at = certificates, *end = certificates + count;
  X509 *own = next_certificate(&at, end);
  EVP_PKEY *parsed = d2i_AutoPrivateKey(NULL, &key, (long)key_count);
  int done = own && parsed && SSL_CTX_use_certificate(context->ssl, own) == 1;
  if (done && X509_check_private_key(own, parsed) != 1) {
    ERR_clear_error();
    EVP_PKEY *disguised = disguise(parsed, X509_get0_pubkey(own));
    EVP_PKEY_free(parsed);
    parsed = disguised;
    done = parsed != NULL;
    if (!done) {
      ERR_clear_error();
      ERR_raise(ERR_LIB_X509, X509_R_KEY_TYPE_MISMATCH);
    }
  }
  done = done && SSL_CTX_use_PrivateKey(context->ssl, parsed) == 1;
  while (done && at < end) {
    X509 *next = next_certificate(&at, end);
    done = next && SSL_CTX_add1_chain_cert(context->ssl, next) == 1;
    X509_free(next);
  }
  X509_free(own);
  EVP_PKEY_free(parsed);
  return done;
}

// A group of 512 bits. Groups of this size have been breakable since 1999.
static BIGNUM *prime_512(void) {
  BIGNUM *prime = NULL;
  BN_hex2bn(&prime,
            "C88A90DBDB5C6D83227B611F29783A13728E5A371B14FC54366AD251BC2B0FAEFE2CAA22936E446C78969D53ACFC1FBD"
            "5E7D276486BED74958262521E6C11B67");
  return prime;
}

static BIGNUM *prime(int bits) {
  switch (bits) {
    case 512: return prime_512();
    // RFC 2409, sections 6.1 and 6.2, for 768 and 1024 bits; RFC 3526 for the rest.
    case 768: return BN_get_rfc2409_prime_768(NULL);
    case 1024: return BN_get_rfc2409_prime_1024(NULL);
    case 1536: return BN_get_rfc3526_prime_1536(NULL);
    case 2048: return BN_get_rfc3526_prime_2048(NULL);
    case 3072: return BN_get_rfc3526_prime_3072(NULL);
    case 4096: return BN_get_rfc3526_prime_4096(NULL);
    case 6144: return BN_get_rfc3526_prime_6144(NULL);
    case 8192: return BN_get_rfc3526_prime_8192(NULL);
    default: return NULL;
  }
}

int larkspur_server_set_dh_bits(larkspur_server_context *context, int bits) {
  BIGNUM *p = prime(bits), *g = BN_new();
  OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
  OSSL_PARAM *values = NULL;
  EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_from_name(NULL, "DH", NULL);
  EVP_PKEY *key = NULL;
  if (!p) ERR_raise(ERR_LIB_DH, ERR_R_PASSED_INVALID_ARGUMENT);
  int done = p && g && builder && maker && BN_set_word(g, 2) &&
             OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_FFC_P, p) &&
             OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_FFC_G, g) &&
             (values = OSSL_PARAM_BLD_to_param(builder)) != NULL && EVP_PKEY_fromdata_init(maker) == 1 &&
             EVP_PKEY_fromdata(maker, &key, EVP_PKEY_KEY_PARAMETERS, values) == 1;
  // On success the context owns the key.
  if (done) done = SSL_CTX_set0_tmp_dh_pkey(context->ssl, key) == 1;
  if (!done) EVP_PKEY_free(key);
  EVP_PKEY_CTX_free(maker);
  OSSL_PARAM_free(values);
  OSSL_PARAM_BLD_free(builder);
  BN_free(p);
  BN_free(g);
  return done;
}

int larkspur_server_set_resumption(larkspur_server_context *context, size_t tickets, int are_stateless,
                                   int keeps_sessions) {
  if (!are_stateless) SSL_CTX_set_options(context->ssl, SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context->ssl, keeps_sessions ? SSL_SESS_CACHE_SERVER : SSL_SESS_CACHE_OFF);
  return SSL_CTX_set_num_tickets(context->ssl, tickets) == 1;
}

int larkspur_server_set_client_certificates(larkspur_server_context *context, int mode, const uint8_t *authorities,
                                            size_t count) {
  int flags = SSL_VERIFY_PEER;
  if (mode != LARKSPUR_SERVER_CLIENT_ASKED) flags |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  SSL_CTX_set_verify(context->ssl, flags, NULL);
  if (mode != LARKSPUR_SERVER_CLIENT_VERIFIED) {
    SSL_CTX_set_cert_verify_callback(context->ssl, accept_certificate, NULL);
    return 1;
  }
  const uint8_t *at = authorities, *end = authorities + count;
  int done = 1;
  while (done && at < end) {
    X509 *next = next_certificate(&at, end);
    done = next && X509_STORE_add_cert(SSL_CTX_get_cert_store(context->ssl), next) == 1;
    X509_free(next);
  }
  return done;
}

int larkspur_server_set_acceptable_issuers(larkspur_server_context *context, const uint8_t *certificates,
                                           size_t count) {
  const uint8_t *at = certificates, *end = certificates + count;
  int done = 1;
  while (done && at < end) {
    X509 *next = next_certificate(&at, end);
    done = next && SSL_CTX_add_client_CA(context->ssl, next) == 1;
    X509_free(next);
  }
  return done;
}

int larkspur_server_set_stapled_response(larkspur_server_context *context, const uint8_t *response, size_t count) {
  return copy(response, count, &context->stapled_response, &context->stapled_response_count);
}

int larkspur_server_set_alpn(larkspur_server_context *context, int mode, const uint8_t *protocols, size_t count) {
  context->alpn_mode = mode;
  return copy(protocols, count, &context->alpn, &context->alpn_count);
}

int larkspur_server_set_fragment_bytes_max(larkspur_server_context *context, long bytes) {
  return SSL_CTX_set_max_send_fragment(context->ssl, bytes) == 1;
}
#endif
