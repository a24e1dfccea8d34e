#ifdef __linux__
// One connection of a test server: TLS between two memory buffers.
#include "ServerSession.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509.h>

larkspur_server_session *larkspur_server_session_create(larkspur_server_context *context) {
  struct larkspur_server_session *session = calloc(1, sizeof *session);
  if (!session) return NULL;
  session->refusal = -1;
  session->ssl = SSL_new(context->ssl);
  session->input = BIO_new(BIO_s_mem());
  session->output = BIO_new(BIO_s_mem());
  if (!session->ssl || !session->input || !session->output) {
    BIO_free(session->input);
    BIO_free(session->output);
    SSL_free(session->ssl);
    free(session);
    return NULL;
  }
  // An empty buffer is not the end of the stream, because more bytes may be fed.
  BIO_set_mem_eof_return(session->input, -1);
  BIO_set_mem_eof_return(session->output, -1);
  SSL_set_bio(session->ssl, session->input, session->output);
  SSL_set_app_data(session->ssl, session);
  SSL_set_accept_state(session->ssl);
  return session;
}

void larkspur_server_session_free(larkspur_server_session *session) {
  if (!session) return;
  // Without this, OpenSSL would drop the session from the cache, and the client could not resume it.
  if (!session->has_failed) SSL_set_shutdown(session->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  SSL_free(session->ssl);
  free(session->server_name);
  free(session->alpn_offered);
  free(session->ciphers_offered);
  free(session->extensions_offered);
  OPENSSL_cleanse(session, sizeof *session);
  free(session);
}

// MARK: Ciphertext

int larkspur_server_feed(larkspur_server_session *session, const uint8_t *bytes, size_t count) {
  size_t written = 0;
  return count == 0 || (BIO_write_ex(session->input, bytes, count, &written) == 1 && written == count);
}

size_t larkspur_server_output_count(larkspur_server_session *session) { return BIO_ctrl_pending(session->output); }

size_t larkspur_server_take_output(larkspur_server_session *session, uint8_t *bytes, size_t capacity) {
  size_t count = 0;
  return BIO_read_ex(session->output, bytes, capacity, &count) == 1 ? count : 0;
}

// MARK: Plaintext

static void keep_message(struct larkspur_server_session *session) {
  // The oldest error is the cause.
  larkspur_ca_error(session->message, sizeof session->message);
}

// Converts the result of a call. The error queue is empty before each call and after this function.
static int outcome(struct larkspur_server_session *session, int result) {
  int error = SSL_get_error(session->ssl, result);
  switch (error) {
    case SSL_ERROR_NONE: return LARKSPUR_SERVER_DONE;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: ERR_clear_error(); return LARKSPUR_SERVER_NEEDS_INPUT;
    case SSL_ERROR_ZERO_RETURN: ERR_clear_error(); return LARKSPUR_SERVER_ENDED;
    default:
      session->has_failed = 1;
      keep_message(session);
      return LARKSPUR_SERVER_FAILED;
  }
}

int larkspur_server_handshake(larkspur_server_session *session) {
  ERR_clear_error();
  return outcome(session, SSL_do_handshake(session->ssl));
}

int larkspur_server_read(larkspur_server_session *session, uint8_t *bytes, size_t capacity, size_t *count) {
  ERR_clear_error();
  return outcome(session, SSL_read_ex(session->ssl, bytes, capacity, count));
}

int larkspur_server_write(larkspur_server_session *session, const uint8_t *bytes, size_t count) {
  if (session->writer.is_forging) {
    while (count > 0) {
      size_t step = count < SSL3_RT_MAX_PLAIN_LENGTH ? count : SSL3_RT_MAX_PLAIN_LENGTH;
      int result = larkspur_server_forge_record(session, SSL3_RT_APPLICATION_DATA, bytes, step);
      if (result != LARKSPUR_SERVER_DONE) return result;
      bytes += step;
      count -= step;
    }
    return LARKSPUR_SERVER_DONE;
  }
  size_t written = 0;
  ERR_clear_error();
  return outcome(session, SSL_write_ex(session->ssl, bytes, count, &written));
}

void larkspur_server_error_message(larkspur_server_session *session, char *message, size_t capacity) {
  snprintf(message, capacity, "%s", session->message);
}

// MARK: Unusual actions of a server

void larkspur_server_close_notify(larkspur_server_session *session) {
  if (session->has_failed || !SSL_is_init_finished(session->ssl)) return;
  if (session->writer.is_forging) {
    const uint8_t alert[2] = {SSL3_AL_WARNING, SSL_AD_CLOSE_NOTIFY};
    larkspur_server_forge_record(session, SSL3_RT_ALERT, alert, sizeof alert);
    return;
  }
  ERR_clear_error();
  SSL_shutdown(session->ssl);
  ERR_clear_error();
}

void larkspur_server_refuse(larkspur_server_session *session, int alert) { session->refusal = alert; }

// OpenSSL counts records wrongly once a record has been forged, and must not write any more.
static int may_write(struct larkspur_server_session *session) {
  if (!session->writer.is_forging) return 1;
  snprintf(session->message, sizeof session->message, "not after a record of the script's own");
  return 0;
}

int larkspur_server_update_key(larkspur_server_session *session, int is_update_requested) {
  if (!may_write(session)) return LARKSPUR_SERVER_FAILED;
  ERR_clear_error();
  int kind = is_update_requested ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED;
  if (SSL_key_update(session->ssl, kind) != 1) {
    keep_message(session);
    return LARKSPUR_SERVER_FAILED;
  }
  return larkspur_server_handshake(session);
}

int larkspur_server_send_ticket(larkspur_server_session *session) {
  if (!may_write(session)) return LARKSPUR_SERVER_FAILED;
  ERR_clear_error();
  if (SSL_new_session_ticket(session->ssl) != 1) {
    keep_message(session);
    return LARKSPUR_SERVER_FAILED;
  }
  return larkspur_server_handshake(session);
}

int larkspur_server_request_renegotiation(larkspur_server_session *session) {
  if (!may_write(session)) return LARKSPUR_SERVER_FAILED;
  ERR_clear_error();
  if (SSL_renegotiate(session->ssl) != 1) {
    keep_message(session);
    return LARKSPUR_SERVER_FAILED;
  }
  return larkspur_server_handshake(session);
}

// MARK: Facts about the connection

const char *larkspur_server_version(larkspur_server_session *session) { return SSL_get_version(session->ssl); }

const char *larkspur_server_cipher(larkspur_server_session *session) {
  const SSL_CIPHER *cipher = SSL_get_current_cipher(session->ssl);
  const char *name = cipher ? SSL_CIPHER_get_name(cipher) : NULL;
  return name ? name : "";
}

int larkspur_server_is_resumed(larkspur_server_session *session) { return SSL_session_reused(session->ssl); }

int larkspur_server_renegotiations(larkspur_server_session *session) {
  return session->handshakes < 1 ? 0 : session->handshakes - 1;
}

int larkspur_server_alert_count(larkspur_server_session *session) { return session->alert_count; }

static int give(const void *bytes, size_t count, uint8_t **out, size_t *out_count) {
  *out = malloc(count ? count : 1);
  if (!*out) return 0;
  if (count) memcpy(*out, bytes, count);
  *out_count = count;
  return 1;
}

static int give_subject(X509 *certificate, uint8_t **out, size_t *out_count) {
  BIO *bio = BIO_new(BIO_s_mem());
  int done = 0;
  // Leaves UTF-8 as it is.
  if (bio && X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0,
                                XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB) >= 0) {
    char *bytes = NULL;
    long count = BIO_get_mem_data(bio, &bytes);
    done = give(bytes, count > 0 ? (size_t)count : 0, out, out_count);
  }
  BIO_free(bio);
  return done;
}

static int give_certificate(X509 *certificate, uint8_t **out, size_t *out_count) {
  uint8_t *bytes = NULL;
  int count = i2d_X509(certificate, &bytes);
  int done = count > 0 && give(bytes, (size_t)count, out, out_count);
  OPENSSL_free(bytes);
  return done;
}

int larkspur_server_fact(larkspur_server_session *session, int fact, uint8_t **out, size_t *out_count) {
  switch (fact) {
    case LARKSPUR_SERVER_FACT_SERVER_NAME:
      return session->server_name && give(session->server_name, session->server_name_count, out, out_count);
    case LARKSPUR_SERVER_FACT_ALPN_OFFERED:
      return session->alpn_offered && give(session->alpn_offered, session->alpn_offered_count, out, out_count);
    case LARKSPUR_SERVER_FACT_CIPHERS_OFFERED:
      return session->ciphers_offered && give(session->ciphers_offered, session->ciphers_offered_count, out, out_count);
    case LARKSPUR_SERVER_FACT_EXTENSIONS_OFFERED:
      return session->extensions_offered &&
             give(session->extensions_offered, session->extensions_offered_count, out, out_count);
    case LARKSPUR_SERVER_FACT_ALERTS: return give(session->alerts, 3 * (size_t)session->alert_count, out, out_count);
    case LARKSPUR_SERVER_FACT_ALPN_CHOSEN: {
      const unsigned char *chosen = NULL;
      unsigned int count = 0;
      SSL_get0_alpn_selected(session->ssl, &chosen, &count);
      return chosen && give(chosen, count, out, out_count);
    }
    case LARKSPUR_SERVER_FACT_CERTIFICATE:
    case LARKSPUR_SERVER_FACT_SUBJECT: {
      X509 *certificate = SSL_get0_peer_certificate(session->ssl);
      if (!certificate) return 0;
      return fact == LARKSPUR_SERVER_FACT_SUBJECT ? give_subject(certificate, out, out_count)
                                                  : give_certificate(certificate, out, out_count);
    }
    default: return 0;
  }
}
#endif
