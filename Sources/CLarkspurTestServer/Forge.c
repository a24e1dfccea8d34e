#ifdef __linux__
// Records that OpenSSL does not write: any type and content, encrypted with the connection's own keys.
//
// OpenSSL reports each record that it writes, which yields the sequence number, the TLS 1.3 traffic secrets (as a key
// log) and the TLS 1.2 master secret. The rest follows RFC 8446, section 7, and RFC 5246, section 6.3.
#include "ServerSession.h"

#include <stdio.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

#define TAG_COUNT 16

struct keys {
  uint8_t key[32];
  size_t key_count;
  uint8_t iv[12];
};

static int derive(const char *kdf_name, OSSL_PARAM *values, uint8_t *out, size_t count) {
  EVP_KDF *kdf = EVP_KDF_fetch(NULL, kdf_name, NULL);
  EVP_KDF_CTX *context = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
  int done = context && EVP_KDF_derive(context, out, count, values) == 1;
  EVP_KDF_CTX_free(context);
  EVP_KDF_free(kdf);
  return done;
}

// HKDF-Expand-Label without a context (RFC 8446, section 7.1).
static int expand(const EVP_MD *digest, uint8_t *secret, size_t secret_count, const char *label, uint8_t *out,
                  size_t count) {
  uint8_t info[64];
  size_t label_count = strlen(label);
  if (label_count > 32) return 0;
  info[0] = 0;
  info[1] = (uint8_t)count;
  info[2] = (uint8_t)(6 + label_count);
  memcpy(info + 3, "tls13 ", 6);
  memcpy(info + 9, label, label_count);
  info[9 + label_count] = 0;
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  OSSL_PARAM values[] = {
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)EVP_MD_get0_name(digest), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret, secret_count),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, 10 + label_count),
      OSSL_PARAM_construct_end(),
  };
  return derive("HKDF", values, out, count);
}

static const EVP_MD *digest_of(const SSL *ssl) {
  const SSL_CIPHER *cipher = SSL_get_current_cipher(ssl);
  return cipher ? SSL_CIPHER_get_handshake_digest(cipher) : NULL;
}

// MARK: Callbacks of OpenSSL

void larkspur_writer_keylog(const SSL *ssl, const char *line) {
  static const char label[] = "SERVER_TRAFFIC_SECRET_0 ";
  struct larkspur_server_session *session = SSL_get_app_data(ssl);
  if (!session || strncmp(line, label, sizeof label - 1) != 0) return;
  const char *secret = strchr(line + sizeof label - 1, ' ');
  if (!secret) return;
  size_t count = 0;
  unsigned byte;
  for (secret++; count < LARKSPUR_SECRET_MAX && sscanf(secret, "%2x", &byte) == 1; secret += 2)
    session->writer.secret[count++] = (uint8_t)byte;
  session->writer.secret_count = count;
  session->writer.sequence = 0;
}

void larkspur_writer_message(int is_write, int version, int type, const void *bytes, size_t count, SSL *ssl,
                             void *argument) {
  (void)argument;
  struct larkspur_server_session *session = SSL_get_app_data(ssl);
  if (!session || !is_write) return;
  struct larkspur_server_writer *writer = &session->writer;
  // OpenSSL reports a message after the records that carry it.
  if (type == SSL3_RT_HEADER) writer->sequence++;
  if (version < TLS1_3_VERSION && type == SSL3_RT_CHANGE_CIPHER_SPEC) writer->sequence = 0;
  if (type != SSL3_RT_HANDSHAKE || count < 1) return;
  uint8_t message = ((const uint8_t *)bytes)[0];
  if (message == SSL3_MT_FINISHED) session->handshakes++;
  if (message != SSL3_MT_KEY_UPDATE) return;
  const EVP_MD *digest = digest_of(ssl);
  uint8_t next[LARKSPUR_SECRET_MAX];
  if (!digest || !expand(digest, writer->secret, writer->secret_count, "traffic upd", next, writer->secret_count))
    return;
  memcpy(writer->secret, next, writer->secret_count);
  writer->sequence = 0;
}

// MARK: Keys

static int keys_of_tls13(struct larkspur_server_session *session, struct keys *keys) {
  struct larkspur_server_writer *writer = &session->writer;
  const EVP_MD *digest = digest_of(session->ssl);
  return digest && writer->secret_count > 0 &&
         expand(digest, writer->secret, writer->secret_count, "key", keys->key, keys->key_count) &&
         expand(digest, writer->secret, writer->secret_count, "iv", keys->iv, sizeof keys->iv);
}

// The key block has the client's key, the server's key, the client's IV and the server's IV (RFC 5246, section 6.3).
static int keys_of_tls12(struct larkspur_server_session *session, struct keys *keys, size_t iv_count) {
  const EVP_MD *digest = digest_of(session->ssl);
  uint8_t master[SSL_MAX_MASTER_KEY_LENGTH], randoms[2 * SSL3_RANDOM_SIZE], block[2 * 32 + 2 * 12];
  const SSL_SESSION *made = SSL_get_session(session->ssl);
  size_t master_count = made ? SSL_SESSION_get_master_key(made, master, sizeof master) : 0;
  if (!digest || master_count == 0) return 0;
  SSL_get_server_random(session->ssl, randoms, SSL3_RANDOM_SIZE);
  SSL_get_client_random(session->ssl, randoms + SSL3_RANDOM_SIZE, SSL3_RANDOM_SIZE);
  OSSL_PARAM values[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)EVP_MD_get0_name(digest), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, master, master_count),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, "key expansion", 13),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, randoms, sizeof randoms),
      OSSL_PARAM_construct_end(),
  };
  if (!derive("TLS1-PRF", values, block, 2 * keys->key_count + 2 * iv_count)) return 0;
  memcpy(keys->key, block + keys->key_count, keys->key_count);
  memcpy(keys->iv, block + 2 * keys->key_count + iv_count, iv_count);
  return 1;
}

// MARK: Records

static void put_number(uint8_t *into, uint64_t value, int count) {
  for (int index = count - 1; index >= 0; index--, value >>= 8) into[index] = (uint8_t)value;
}

static int seal(const EVP_CIPHER *cipher, const struct keys *keys, const uint8_t *nonce, const uint8_t *extra,
                int extra_count, uint8_t *bytes, int count) {
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  int written = 0, rest = 0;
  int done = context && EVP_EncryptInit_ex2(context, cipher, keys->key, nonce, NULL) == 1 &&
             EVP_EncryptUpdate(context, NULL, &written, extra, extra_count) == 1 &&
             EVP_EncryptUpdate(context, bytes, &written, bytes, count) == 1 && written == count &&
             EVP_EncryptFinal_ex(context, bytes + count, &rest) == 1 &&
             EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, TAG_COUNT, bytes + count) == 1;
  EVP_CIPHER_CTX_free(context);
  return done;
}

static int refuse(struct larkspur_server_session *session, const char *message) {
  snprintf(session->message, sizeof session->message, "%s", message);
  return LARKSPUR_SERVER_FAILED;
}

int larkspur_server_forge_record(larkspur_server_session *session, int type, const uint8_t *bytes, size_t count) {
  static const size_t header_count = 5, explicit_count = 8;
  uint8_t record[5 + 8 + 65000 + 1 + TAG_COUNT], nonce[12], extra[13];
  struct keys keys = {.key_count = 0};
  if (count > 65000) return refuse(session, "a record has 65,000 bytes at most");
  if (!SSL_is_init_finished(session->ssl)) return refuse(session, "there are no keys before the handshake is done");
  const SSL_CIPHER *suite = SSL_get_current_cipher(session->ssl);
  int nid = suite ? SSL_CIPHER_get_cipher_nid(suite) : NID_undef;
  int is_gcm = nid == NID_aes_128_gcm || nid == NID_aes_256_gcm;
  if (!is_gcm && nid != NID_chacha20_poly1305)
    return refuse(session, "such records can be made with AES-GCM and ChaCha20-Poly1305 only");
  const EVP_CIPHER *cipher = EVP_get_cipherbynid(nid);
  if (!cipher) return refuse(session, "the cipher is not there");
  keys.key_count = (size_t)EVP_CIPHER_get_key_length(cipher);

  int is_tls13 = SSL_version(session->ssl) >= TLS1_3_VERSION;
  // With AES-GCM, four bytes of the nonce are secret and eight are in the record (RFC 5288, section 3). With ChaCha20
  // all twelve are secret.
  int has_explicit = !is_tls13 && is_gcm;
  if (!(is_tls13 ? keys_of_tls13(session, &keys) : keys_of_tls12(session, &keys, is_gcm ? 4 : 12)))
    return refuse(session, "the connection's keys are not known");
  uint64_t sequence = session->writer.sequence;
  memcpy(nonce, keys.iv, sizeof nonce);
  if (has_explicit) {
    put_number(nonce + 4, sequence, 8);
  } else {
    uint8_t number[8];
    put_number(number, sequence, 8);
    for (int index = 0; index < 8; index++) nonce[4 + index] ^= number[index];
  }

  uint8_t *content = record + header_count + (has_explicit ? explicit_count : 0);
  size_t content_count = count;
  if (count) memcpy(content, bytes, count);
  // The real type follows the content (RFC 8446, section 5.2).
  if (is_tls13) content[content_count++] = (uint8_t)type;
  size_t body_count = (has_explicit ? explicit_count : 0) + content_count + TAG_COUNT;
  record[0] = is_tls13 ? SSL3_RT_APPLICATION_DATA : (uint8_t)type;
  put_number(record + 1, TLS1_2_VERSION, 2);
  put_number(record + 3, body_count, 2);
  if (has_explicit) memcpy(record + header_count, nonce + 4, explicit_count);
  int extra_count = 5;
  if (is_tls13) {
    memcpy(extra, record, 5);
  } else {
    // The additional data of RFC 5246, section 6.2.3.3.
    put_number(extra, sequence, 8);
    memcpy(extra + 8, record, 3);
    put_number(extra + 11, content_count, 2);
    extra_count = 13;
  }
  size_t written = 0;
  if (!seal(cipher, &keys, nonce, extra, extra_count, content, (int)content_count) ||
      BIO_write_ex(session->output, record, header_count + body_count, &written) != 1)
    return refuse(session, "the record could not be encrypted");
  session->writer.sequence++;
  session->writer.is_forging = 1;
  return LARKSPUR_SERVER_DONE;
}
#endif
