// Certificates as bytes and words, chains, verification outside of a handshake, and the files that they come in.
#define _GNU_SOURCE
#include "CLarkspurOpenSSL.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void larkspur_bytes_free(larkspur_bytes bytes) { free(bytes.bytes); }

static larkspur_bytes copied(const void *bytes, size_t count) {
  larkspur_bytes copy = {malloc(count > 0 ? count : 1), count};
  if (!copy.bytes || !bytes) {
    free(copy.bytes);
    return (larkspur_bytes){0};
  }
  memcpy(copy.bytes, bytes, count);
  return copy;
}

static larkspur_bytes taken_out_of(BIO *bio) {
  char *bytes = NULL;
  long count = bio ? BIO_get_mem_data(bio, &bytes) : 0;
  larkspur_bytes copy = count > 0 ? copied(bytes, (size_t)count) : (larkspur_bytes){0};
  BIO_free(bio);
  return copy;
}

// OpenSSL's own reader takes "010.0.0.1" and "1.2.3.4 and more".
bool larkspur_is_ipv4_address(const char *text) {
  struct in_addr address;
  return inet_pton(AF_INET, text, &address) == 1;
}

larkspur_bytes larkspur_canonical_ipv6_address(const char *text) {
  struct in6_addr address;
  char canonical[INET6_ADDRSTRLEN];
  if (inet_pton(AF_INET6, text, &address) != 1) return (larkspur_bytes){0};
  if (!inet_ntop(AF_INET6, &address, canonical, sizeof canonical)) return (larkspur_bytes){0};
  return copied(canonical, strlen(canonical));
}

// MARK: - Chains

int larkspur_chain_count(const STACK_OF(X509) *chain) { return chain ? sk_X509_num(chain) : 0; }
X509 *larkspur_chain_at(const STACK_OF(X509) *chain, int index) { return sk_X509_value(chain, index); }
STACK_OF(X509) *larkspur_chain_new(void) { return sk_X509_new_null(); }

int larkspur_chain_append(STACK_OF(X509) *chain, X509 *certificate) {
  return X509_add_cert(chain, certificate, X509_ADD_FLAG_UP_REF);
}

void larkspur_chain_free(STACK_OF(X509) *chain) { sk_X509_pop_free(chain, X509_free); }

// MARK: - One certificate

larkspur_bytes larkspur_certificate_der(const X509 *certificate) {
  unsigned char *bytes = NULL;
  int count = i2d_X509(certificate, &bytes);
  larkspur_bytes copy = count > 0 ? copied(bytes, (size_t)count) : (larkspur_bytes){0};
  OPENSSL_free(bytes);
  return copy;
}

larkspur_bytes larkspur_certificate_spki(const X509 *certificate) {
  unsigned char *bytes = NULL;
  int count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &bytes);
  larkspur_bytes copy = count > 0 ? copied(bytes, (size_t)count) : (larkspur_bytes){0};
  OPENSSL_free(bytes);
  return copy;
}

larkspur_bytes larkspur_name_text(const X509_NAME *name) {
  BIO *bio = name ? BIO_new(BIO_s_mem()) : NULL;
  // UTF-8 as it is, and control characters escaped: a certificate writes nothing into a terminal.
  if (bio) X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  return taken_out_of(bio);
}

larkspur_bytes larkspur_name_der(const X509_NAME *name) {
  unsigned char *bytes = NULL;
  int count = name ? i2d_X509_NAME(name, &bytes) : 0;
  larkspur_bytes copy = count > 0 ? copied(bytes, (size_t)count) : (larkspur_bytes){0};
  OPENSSL_free(bytes);
  return copy;
}

larkspur_bytes larkspur_certificate_serial(const X509 *certificate) {
  const ASN1_INTEGER *serial = X509_get0_serialNumber(certificate);
  return copied(ASN1_STRING_get0_data(serial), (size_t)ASN1_STRING_length(serial));
}

static int64_t seconds(const ASN1_TIME *time) {
  struct tm parts;
  if (!time || ASN1_TIME_to_tm(time, &parts) != 1) return INT64_MIN;
  return (int64_t)timegm(&parts);
}

int64_t larkspur_certificate_not_before(const X509 *certificate) { return seconds(X509_get0_notBefore(certificate)); }
int64_t larkspur_certificate_not_after(const X509 *certificate) { return seconds(X509_get0_notAfter(certificate)); }

GENERAL_NAMES *larkspur_certificate_names(const X509 *certificate) {
  return X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
}

int larkspur_names_count(const GENERAL_NAMES *names) { return names ? sk_GENERAL_NAME_num(names) : 0; }

int larkspur_names_at(const GENERAL_NAMES *names, int index, const uint8_t **bytes, size_t *count) {
  const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, index);
  if (name->type != GEN_DNS && name->type != GEN_IPADD) return -1;
  const ASN1_STRING *string = name->type == GEN_DNS ? name->d.dNSName : name->d.iPAddress;
  *bytes = ASN1_STRING_get0_data(string);
  *count = (size_t)ASN1_STRING_length(string);
  return name->type;
}

bool larkspur_certificate_must_staple(const X509 *certificate) {
  enum { status_request = 5 };
  TLS_FEATURE *features = X509_get_ext_d2i(certificate, NID_tlsfeature, NULL, NULL);
  bool found = false;
  for (int index = 0; features && index < sk_ASN1_INTEGER_num(features); index++)
    found |= ASN1_INTEGER_get(sk_ASN1_INTEGER_value(features, index)) == status_request;
  TLS_FEATURE_free(features);
  return found;
}

// MARK: - Verification

larkspur_tls_verification_result larkspur_verify(X509_STORE *store, STACK_OF(X509) *sent, const char *name,
                                                 const char *address, int64_t date, bool any_anchor) {
  larkspur_tls_verification_result result = {.error = X509_V_ERR_UNSPECIFIED};
  X509_STORE_CTX *context = X509_STORE_CTX_new();
  if (context && larkspur_chain_count(sent) > 0 &&
      X509_STORE_CTX_init(context, store, sk_X509_value(sent, 0), sent) == 1) {
    X509_VERIFY_PARAM *rules = X509_STORE_CTX_get0_param(context);
    larkspur_verification_rules(rules);
    if (any_anchor) X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_PARTIAL_CHAIN);
    X509_VERIFY_PARAM_set_time(rules, (time_t)date);
    if ((!name || X509_VERIFY_PARAM_set1_host(rules, name, 0) == 1) &&
        (!address || X509_VERIFY_PARAM_set1_ip_asc(rules, address) == 1)) {
      int verified = X509_verify_cert(context);
      int error = X509_STORE_CTX_get_error(context);
      result.error = verified == 1 ? X509_V_OK : error == X509_V_OK ? X509_V_ERR_UNSPECIFIED : error;
      result.depth = X509_STORE_CTX_get_error_depth(context);
      result.verified = X509_STORE_CTX_get1_chain(context);
    }
  }
  X509_STORE_CTX_free(context);
  ERR_clear_error();
  return result;
}

// Whether a time lies in the past or in the future of `date`, with five minutes' grace for clocks.
static bool is_after(const ASN1_GENERALIZEDTIME *time, int64_t date) { return seconds(time) > date + 300; }
static bool is_before(const ASN1_GENERALIZEDTIME *time, int64_t date) { return seconds(time) < date - 300; }

larkspur_ocsp_status larkspur_check_stapled_response(const uint8_t *bytes, size_t count, STACK_OF(X509) *verified,
                                                     X509_STORE *store, int64_t date) {
  larkspur_ocsp_status status = larkspur_ocsp_malformed;
  const unsigned char *next = bytes;
  OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &next, (long)count);
  OCSP_BASICRESP *basic = NULL;
  OCSP_CERTID *id = NULL;
  if (!response) goto out;
  if (OCSP_response_status(response) != OCSP_RESPONSE_STATUS_SUCCESSFUL) {
    status = larkspur_ocsp_none;
    goto out;
  }
  basic = OCSP_response_get1_basic(response);
  if (!basic) goto out;
  status = larkspur_ocsp_untrusted;
  if (OCSP_basic_verify(basic, verified, store, 0) <= 0) goto out;
  status = larkspur_ocsp_unknown;
  int length = larkspur_chain_count(verified);
  // Behind a root there is nobody: it vouches for itself.
  X509 *leaf = length > 0 ? sk_X509_value(verified, 0) : NULL;
  X509 *issuer = length > 1 ? sk_X509_value(verified, 1) : leaf;
  int reason, found = V_OCSP_CERTSTATUS_UNKNOWN;
  ASN1_GENERALIZEDTIME *this_update = NULL, *next_update = NULL;
  for (int index = 0; leaf && index < OCSP_resp_count(basic); index++) {
    OCSP_SINGLERESP *single = OCSP_resp_get0(basic, index);
    // The response names its certificate by a digest of its own choice.
    ASN1_OBJECT *digest = NULL;
    OCSP_id_get0_info(NULL, &digest, NULL, NULL, (OCSP_CERTID *)OCSP_SINGLERESP_get0_id(single));
    const EVP_MD *method = EVP_get_digestbyobj(digest);
    OCSP_CERTID_free(id);
    id = method ? OCSP_cert_to_id(method, leaf, issuer) : NULL;
    if (!id || OCSP_id_cmp(id, OCSP_SINGLERESP_get0_id(single)) != 0) continue;
    found = OCSP_single_get0_status(single, &reason, NULL, &this_update, &next_update);
    // Of several answers the worst counts.
    if (found == V_OCSP_CERTSTATUS_REVOKED) break;
  }
  if (found == V_OCSP_CERTSTATUS_UNKNOWN) goto out;
  status = larkspur_ocsp_outdated;
  // An answer that does not say when it ends is good for a day: an old one must not be good for ever.
  if (!this_update || is_after(this_update, date)) goto out;
  if (next_update ? is_before(next_update, date) : is_before(this_update, date - 86400)) goto out;
  status = found == V_OCSP_CERTSTATUS_REVOKED ? larkspur_ocsp_revoked : larkspur_ocsp_good;
out:
  OCSP_CERTID_free(id);
  OCSP_BASICRESP_free(basic);
  OCSP_RESPONSE_free(response);
  ERR_clear_error();
  return status;
}

// MARK: - Files

// Whether a loop over PEM blocks ended because there was no further one, and not at one that is broken.
static bool is_end_of_pem(void) {
  unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

STACK_OF(X509) *larkspur_read_certificates(const void *bytes, size_t count) {
  ERR_clear_error();
  if (count > INT32_MAX) return NULL;
  BIO *bio = BIO_new_mem_buf(bytes, (int)count);
  STACK_OF(X509) *chain = bio ? sk_X509_new_null() : NULL;
  X509 *certificate;
  bool good = chain != NULL;
  while (good && (certificate = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL))) {
    good = sk_X509_push(chain, certificate) > 0;
    if (!good) X509_free(certificate);
  }
  good = good && is_end_of_pem();
  BIO_free(bio);
  if (good && sk_X509_num(chain) == 0) {
    const unsigned char *next = bytes;
    certificate = d2i_X509(NULL, &next, (long)count);
    // Bytes behind the certificate would be something that nobody has looked at.
    good = certificate && next == (const unsigned char *)bytes + count && sk_X509_push(chain, certificate) > 0;
    if (!good) X509_free(certificate);
  }
  ERR_clear_error();
  if (good) return chain;
  larkspur_chain_free(chain);
  return NULL;
}

void larkspur_system_error_words(int number, char *words, size_t capacity) {
  const char *text = strerror_r(number, words, capacity);
  if (text != words) snprintf(words, capacity, "%s", text);
}

// The errno of the first system call that failed, or 0.
static int first_system_error(void) {
  unsigned long code = ERR_peek_error();
  return ERR_SYSTEM_ERROR(code) ? ERR_GET_REASON(code) : 0;
}

int larkspur_add_system_roots(X509_STORE *store) {
  ERR_clear_error();
  X509_LOOKUP *file = X509_STORE_add_lookup(store, X509_LOOKUP_file());
  if (!file) return ENOMEM;
  int error = X509_LOOKUP_load_file(file, NULL, X509_FILETYPE_DEFAULT) == 1 ? 0 : first_system_error();
  // A file that is missing is no error: then the directory has to do. Nor is one without a certificate, such as /dev/null.
  if (error == ENOENT || error == ENOTDIR || error == EISDIR) error = 0;
  X509_LOOKUP *folder = X509_STORE_add_lookup(store, X509_LOOKUP_hash_dir());
  X509_LOOKUP *other = X509_STORE_add_lookup(store, X509_LOOKUP_store());
  if (folder && other) {
    X509_LOOKUP_add_dir(folder, NULL, X509_FILETYPE_DEFAULT);
    X509_LOOKUP_add_store(other, NULL);
  } else if (error == 0) {
    error = ENOMEM;
  }
  ERR_clear_error();
  return error;
}

int larkspur_read_revocation_lists(X509_STORE *store, const void *bytes, size_t count) {
  ERR_clear_error();
  if (count > INT32_MAX) return -1;
  BIO *bio = BIO_new_mem_buf(bytes, (int)count);
  X509_CRL *list;
  int found = 0;
  bool good = bio != NULL;
  while (good && (list = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL))) {
    good = X509_STORE_add_crl(store, list) == 1;
    X509_CRL_free(list);
    found++;
  }
  good = good && is_end_of_pem();
  BIO_free(bio);
  if (good && found == 0) {
    const unsigned char *next = bytes;
    list = d2i_X509_CRL(NULL, &next, (long)count);
    good = list && next == (const unsigned char *)bytes + count && X509_STORE_add_crl(store, list) == 1;
    X509_CRL_free(list);
    found = 1;
  }
  ERR_clear_error();
  // As with curl's --crlfile: once there are lists, every issuer of a chain needs one.
  if (good) X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  return good ? found : -1;
}

// MARK: - Keys

typedef struct {
  const char *password;
  bool asked;
} password_source;

static int give_password(char *buffer, int room, int writing, void *pointer) {
  (void)writing;
  password_source *source = pointer;
  source->asked = true;
  size_t count = source->password ? strlen(source->password) : 0;
  if (!source->password || count > (size_t)room) return -1;
  memcpy(buffer, source->password, count);
  return (int)count;
}

static bool means_unsupported(unsigned long error) {
  int reason = ERR_GET_REASON(error);
  switch (ERR_GET_LIB(error)) {
  // (The decoders' own ERR_R_UNSUPPORTED means any data that none of them can read.)
  case ERR_LIB_EVP:
    return reason == ERR_R_UNSUPPORTED || reason == EVP_R_UNSUPPORTED_ALGORITHM || reason == EVP_R_UNSUPPORTED_CIPHER ||
           reason == EVP_R_UNSUPPORTED_KEY_DERIVATION_FUNCTION || reason == EVP_R_UNSUPPORTED_PRF ||
           reason == EVP_R_UNKNOWN_PBE_ALGORITHM || reason == EVP_R_UNKNOWN_CIPHER || reason == EVP_R_UNKNOWN_DIGEST;
  case ERR_LIB_PEM: return reason == PEM_R_UNSUPPORTED_CIPHER || reason == PEM_R_UNSUPPORTED_ENCRYPTION;
  case ERR_LIB_PKCS12:
    return reason == PKCS12_R_UNKNOWN_DIGEST_ALGORITHM || reason == PKCS12_R_UNSUPPORTED_PKCS12_MODE;
  default: return false;
  }
}

static bool means_wrong_password(unsigned long error) {
  return ERR_GET_LIB(error) == ERR_LIB_PKCS12 && ERR_GET_REASON(error) == PKCS12_R_MAC_VERIFY_FAILURE;
}

// Why something could not be read: what the error queue says, which is empty afterwards. An algorithm that is missing comes first:
// OpenSSL then goes on to say that a digest is wrong, too. An archive without a digest has no wrong password.
static larkspur_secret_failure take_secret_failure(void) {
  larkspur_secret_failure failure = larkspur_secret_unreadable;
  bool has_digest = true;
  for (unsigned long error; (error = ERR_get_error()) != 0;) {
    if (ERR_GET_LIB(error) == ERR_LIB_PKCS12 && ERR_GET_REASON(error) == PKCS12_R_MAC_ABSENT) has_digest = false;
    if (means_unsupported(error)) failure = larkspur_secret_unsupported;
    else if (failure == larkspur_secret_unreadable && has_digest && means_wrong_password(error))
      failure = larkspur_secret_wants_password;
  }
  return failure;
}

// Whether the older encryption of PEM (RFC 1421 4.6.1.3) names a cipher that is missing: OpenSSL keeps that to itself.
static bool names_missing_cipher(const char *bytes, size_t count) {
  static const char field[] = "\nDEK-Info: ";
  const char *name = memmem(bytes, count, field, sizeof field - 1);
  if (!name) return false;
  name += sizeof field - 1;
  const char *comma = memchr(name, ',', (size_t)(bytes + count - name));
  char text[64];
  if (!comma || (size_t)(comma - name) >= sizeof text) return false;
  memcpy(text, name, (size_t)(comma - name));
  text[comma - name] = 0;
  EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, text, NULL);
  EVP_CIPHER_free(cipher);
  ERR_clear_error();
  return !cipher;
}

EVP_PKEY *larkspur_read_key(const void *bytes, size_t count, const char *password, larkspur_secret_failure *failure) {
  ERR_clear_error();
  *failure = larkspur_secret_unreadable;
  if (count > INT32_MAX) return NULL;
  password_source source = {password, false};
  BIO *bio = BIO_new_mem_buf(bytes, (int)count);
  EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, give_password, &source) : NULL;
  BIO_free(bio);
  if (!key && source.asked) *failure = take_secret_failure();
  if (!key && !source.asked) {
    const unsigned char *next = bytes;
    key = d2i_AutoPrivateKey(NULL, &next, (long)count);
  }
  if (!key && source.asked && *failure == larkspur_secret_unreadable)
    *failure = names_missing_cipher(bytes, count) ? larkspur_secret_unsupported : larkspur_secret_wants_password;
  ERR_clear_error();
  return key;
}

int larkspur_read_pkcs12(const void *bytes, size_t count, const char *password, X509 **leaf, EVP_PKEY **key,
                         STACK_OF(X509) **chain, larkspur_secret_failure *failure) {
  ERR_clear_error();
  const unsigned char *next = bytes;
  PKCS12 *archive = d2i_PKCS12(NULL, &next, (long)count);
  int parsed = archive ? PKCS12_parse(archive, password, key, leaf, chain) : 0;
  PKCS12_free(archive);
  *failure = take_secret_failure();
  return parsed && *leaf && *key;
}
