#ifdef __linux__
// Keys and signatures for the test server's certificates.
#include "CLarkspurTestServer.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509.h>

void larkspur_ca_free(uint8_t *bytes) { free(bytes); }

void larkspur_ca_error(char *message, size_t capacity) {
  const char *data = NULL;
  int flags = 0;
  unsigned long error = ERR_get_error_all(NULL, NULL, NULL, &data, &flags);
  const char *reason = error ? ERR_reason_error_string(error) : NULL;
  int has_data = data != NULL && (flags & ERR_TXT_STRING) && *data;
  snprintf(message, capacity, "%s%s%s", reason ? reason : "OpenSSL gives no reason", has_data ? ": " : "",
           has_data ? data : "");
  ERR_clear_error();
}

int64_t larkspur_ca_seconds_now(void) { return (int64_t)time(NULL); }

static int give(const void *bytes, size_t count, uint8_t **out, size_t *out_count) {
  *out = malloc(count ? count : 1);
  if (!*out) return 0;
  if (count) memcpy(*out, bytes, count);
  *out_count = count;
  return 1;
}

static int give_bio(BIO *bio, uint8_t **out, size_t *out_count) {
  char *bytes = NULL;
  long count = BIO_get_mem_data(bio, &bytes);
  return count > 0 && give(bytes, (size_t)count, out, out_count);
}

static EVP_PKEY *parse_key(const uint8_t *key, size_t count) {
  if (count > INT_MAX) return NULL;
  return d2i_AutoPrivateKey(NULL, &key, (long)count);
}

int larkspur_ca_make_key(const char *curve, int bits, uint8_t **out, size_t *out_count) {
  int done = 0;
  EVP_PKEY *key;
  if (!curve)
    key = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)bits);
  else if (strcmp(curve, "ED25519") == 0)
    key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
  else
    key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", curve);
  PKCS8_PRIV_KEY_INFO *info = key ? EVP_PKEY2PKCS8(key) : NULL;
  uint8_t *bytes = NULL;
  int count = info ? i2d_PKCS8_PRIV_KEY_INFO(info, &bytes) : 0;
  if (count > 0) done = give(bytes, (size_t)count, out, out_count);
  OPENSSL_free(bytes);
  PKCS8_PRIV_KEY_INFO_free(info);
  EVP_PKEY_free(key);
  return done;
}

int larkspur_ca_public_key(const uint8_t *key, size_t key_count, uint8_t **out, size_t *out_count) {
  int done = 0;
  EVP_PKEY *parsed = parse_key(key, key_count);
  uint8_t *bytes = NULL;
  int count = parsed ? i2d_PUBKEY(parsed, &bytes) : 0;
  if (count > 0) done = give(bytes, (size_t)count, out, out_count);
  OPENSSL_free(bytes);
  EVP_PKEY_free(parsed);
  return done;
}

int larkspur_ca_key_identifier(const uint8_t *key, size_t key_count, uint8_t **out, size_t *out_count) {
  int done = 0;
  EVP_PKEY *parsed = parse_key(key, key_count);
  X509_PUBKEY *info = NULL;
  const unsigned char *bits = NULL;
  int count = 0;
  if (parsed && X509_PUBKEY_set(&info, parsed) && X509_PUBKEY_get0_param(NULL, &bits, &count, NULL, info))
    done = larkspur_ca_digest("SHA1", bits, (size_t)count, out, out_count);
  X509_PUBKEY_free(info);
  EVP_PKEY_free(parsed);
  return done;
}

int larkspur_ca_key_kind(const uint8_t *key, size_t key_count) {
  EVP_PKEY *parsed = parse_key(key, key_count);
  int kind = 0;
  if (parsed && EVP_PKEY_is_a(parsed, "EC")) kind = LARKSPUR_CA_EC;
  if (parsed && EVP_PKEY_is_a(parsed, "RSA")) kind = LARKSPUR_CA_RSA;
  if (parsed && EVP_PKEY_is_a(parsed, "ED25519")) kind = LARKSPUR_CA_ED25519;
  EVP_PKEY_free(parsed);
  return kind;
}

int larkspur_ca_sign(const uint8_t *key, size_t key_count, const char *digest, const uint8_t *bytes, size_t count,
                     uint8_t **out, size_t *out_count) {
  int done = 0;
  EVP_PKEY *parsed = parse_key(key, key_count);
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  size_t signature_count = 0;
  uint8_t *signature = NULL;
  if (parsed && context) {
    if (EVP_PKEY_is_a(parsed, "ED25519")) digest = NULL;
    if (EVP_DigestSignInit_ex(context, NULL, digest, NULL, NULL, parsed, NULL) == 1 &&
        EVP_DigestSign(context, NULL, &signature_count, bytes, count) == 1 &&
        (signature = malloc(signature_count ? signature_count : 1)) != NULL &&
        EVP_DigestSign(context, signature, &signature_count, bytes, count) == 1)
      done = give(signature, signature_count, out, out_count);
  }
  free(signature);
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(parsed);
  return done;
}

int larkspur_ca_digest(const char *digest, const uint8_t *bytes, size_t count, uint8_t **out, size_t *out_count) {
  uint8_t sum[EVP_MAX_MD_SIZE];
  size_t sum_count = 0;
  return EVP_Q_digest(NULL, digest, NULL, bytes, count, sum, &sum_count) == 1 &&
         give(sum, sum_count, out, out_count);
}

int larkspur_ca_encrypt_key(const uint8_t *key, size_t key_count, const char *passphrase, int is_traditional,
                            uint8_t **out, size_t *out_count) {
  int done = 0;
  EVP_PKEY *parsed = parse_key(key, key_count);
  BIO *bio = BIO_new(BIO_s_mem());
  if (parsed && bio) {
    const EVP_CIPHER *cipher = EVP_aes_256_cbc();
    size_t length = strlen(passphrase);
    int written =
        length > INT_MAX ? 0
        : is_traditional
            ? PEM_write_bio_PrivateKey_traditional(bio, parsed, cipher, (const unsigned char *)passphrase, (int)length,
                                                   NULL, NULL)
            : PEM_write_bio_PKCS8PrivateKey(bio, parsed, cipher, passphrase, (int)length, NULL, NULL);
    if (written == 1) done = give_bio(bio, out, out_count);
  }
  BIO_free(bio);
  EVP_PKEY_free(parsed);
  return done;
}

int larkspur_ca_pkcs12(const uint8_t *key, size_t key_count, const uint8_t *certificates, size_t certificates_count,
                       const char *password, const char *name, int is_legacy, uint8_t **out, size_t *out_count) {
  int done = 0;
  EVP_PKEY *parsed = parse_key(key, key_count);
  STACK_OF(X509) *others = sk_X509_new_null();
  BIO *bio = BIO_new(BIO_s_mem());
  X509 *own = NULL;
  PKCS12 *bundle = NULL;
  const uint8_t *at = certificates;
  const uint8_t *end = certificates + certificates_count;
  int is_whole = parsed && others && bio && certificates_count <= INT_MAX;
  while (is_whole && at < end) {
    X509 *next = d2i_X509(NULL, &at, (long)(end - at));
    if (!next) {
      is_whole = 0;
    } else if (!own) {
      own = next;
    } else if (!sk_X509_push(others, next)) {
      X509_free(next);
      is_whole = 0;
    }
  }
  int cipher = is_legacy ? NID_pbe_WithSHA1And3_Key_TripleDES_CBC : 0;
  if (is_whole && own) bundle = PKCS12_create(password, name, parsed, own, others, cipher, cipher, 0, 0, 0);
  if (bundle && i2d_PKCS12_bio(bio, bundle) == 1) done = give_bio(bio, out, out_count);
  PKCS12_free(bundle);
  X509_free(own);
  sk_X509_pop_free(others, X509_free);
  BIO_free(bio);
  EVP_PKEY_free(parsed);
  return done;
}
#endif
