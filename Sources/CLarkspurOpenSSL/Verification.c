#ifdef __linux__
// Verification of chains, by OpenSSL with additional rules for hosts, anchors and the size of keys, and of stapled
// responses.
#include "CLarkspurOpenSSL.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include <openssl/core_names.h>

// MARK: - Hosts

bool larkspur_host_set(larkspur_host *host, const char *name, const char *address) {
  *host = (larkspur_host){0};
  if (address) {
    if (inet_pton(AF_INET, address, host->address) == 1) host->address_count = sizeof(struct in_addr);
    else if (inet_pton(AF_INET6, address, host->address) == 1) host->address_count = sizeof(struct in6_addr);
    return host->address_count > 0;
  }
  if (name) {
    size_t count = strlen(name);
    if (count == 0 || count >= sizeof host->name) return false;
    memcpy(host->name, name, count + 1);
  }
  return true;
}

// Whether bytes of a certificate equal a text in lower case, apart from the case of ASCII letters. The text contains
// neither NUL nor '*', so bytes that contain one are never equal to it.
static bool equals(const uint8_t *bytes, size_t count, const char *text) {
  if (strlen(text) != count) return false;
  for (size_t index = 0; index < count; index++) {
    uint8_t byte = bytes[index];
    if (byte >= 'A' && byte <= 'Z') byte |= 0x20;
    if (byte != (uint8_t)text[index]) return false;
  }
  return true;
}

// Whether a dNSName covers a host. RFC 6125 6.4: a star stands for exactly one whole left-most label, and not for a
// label right below a top-level domain.
static bool is_for(const ASN1_STRING *pattern, const char *host) {
  const uint8_t *bytes = ASN1_STRING_get0_data(pattern);
  size_t count = (size_t)ASN1_STRING_length(pattern);
  if (count < 2 || bytes[0] != '*' || bytes[1] != '.') return equals(bytes, count, host);
  const char *rest = strchr(host, '.');
  return rest && strchr(rest + 1, '.') && equals(bytes + 1, count - 1, rest);
}

static bool is_for_host(const GENERAL_NAME *name, const larkspur_host *host) {
  if (host->address_count == 0) return name->type == GEN_DNS && is_for(name->d.dNSName, host->name);
  return name->type == GEN_IPADD && ASN1_STRING_length(name->d.iPAddress) == host->address_count &&
         memcmp(ASN1_STRING_get0_data(name->d.iPAddress), host->address, host->address_count) == 0;
}

static int check_host(const X509 *certificate, const larkspur_host *host) {
  if (host->address_count == 0 && host->name[0] == 0) return X509_V_OK;
  // Null if the extension is missing, occurs twice, or cannot be read.
  GENERAL_NAMES *names = larkspur_certificate_names(certificate);
  bool found = false;
  for (int index = 0; !found && index < larkspur_names_count(names); index++)
    found = is_for_host(sk_GENERAL_NAME_value(names, index), host);
  GENERAL_NAMES_free(names);
  if (found) return X509_V_OK;
  return host->address_count > 0 ? X509_V_ERR_IP_ADDRESS_MISMATCH : X509_V_ERR_HOSTNAME_MISMATCH;
}

// Whether a host is the name of a subtree or lies below it (RFC 5280 4.2.1.10). With a leading dot it must lie below.
static bool is_within(const char *host, const ASN1_STRING *subtree) {
  const uint8_t *base = ASN1_STRING_get0_data(subtree);
  size_t length = strlen(host), count = (size_t)ASN1_STRING_length(subtree);
  if (count == 0) return true;
  if (length < count || !equals(base, count, host + length - count)) return false;
  return length == count || base[0] == '.' || host[length - count - 1] == '.';
}

static bool excludes(const X509 *issuer, const char *host) {
  NAME_CONSTRAINTS *constraints = X509_get_ext_d2i(issuer, NID_name_constraints, NULL, NULL);
  const STACK_OF(GENERAL_SUBTREE) *excluded = constraints ? constraints->excludedSubtrees : NULL;
  bool found = false;
  for (int index = 0; !found && index < sk_GENERAL_SUBTREE_num(excluded); index++) {
    const GENERAL_NAME *base = sk_GENERAL_SUBTREE_value(excluded, index)->base;
    found = base->type == GEN_DNS && is_within(host, base->d.dNSName);
  }
  NAME_CONSTRAINTS_free(constraints);
  return found;
}

// MARK: - Anchors

// Whether the certificate is a trusted one, at which the chain ends. With X509_V_FLAG_PARTIAL_CHAIN the first trusted
// certificate is an anchor. RFC 5280 6.1.1: path validation takes only the name and the key of an anchor.
// Restrictions that an anchor states about itself still count.
static bool is_anchor(X509_STORE_CTX *context, int depth) {
  unsigned long flags = X509_VERIFY_PARAM_get_flags(X509_STORE_CTX_get0_param(context));
  return depth >= X509_STORE_CTX_get_num_untrusted(context) &&
         ((flags & X509_V_FLAG_PARTIAL_CHAIN) != 0 ||
          depth + 1 == larkspur_chain_count(X509_STORE_CTX_get0_chain(context)));
}

// Whether a certificate states that it is not a certificate authority.
static bool denies_authority(X509 *certificate) {
  uint32_t flags = X509_get_extension_flags(certificate);
  if ((flags & EXFLAG_INVALID) != 0 || ((flags & EXFLAG_BCONS) != 0 && (flags & EXFLAG_CA) == 0)) return true;
  // Without the extension all bits are set.
  return (X509_get_key_usage(certificate) & KU_KEY_CERT_SIGN) == 0;
}

static bool is_forgiven_for_anchor(int error, X509 *anchor) {
  switch (error) {
  case X509_V_ERR_CA_CERT_MISSING_KEY_USAGE:
  case X509_V_ERR_CA_BCONS_NOT_CRITICAL:
  case X509_V_ERR_PATHLEN_INVALID_FOR_NON_CA:
  case X509_V_ERR_PATHLEN_WITHOUT_KU_KEY_CERT_SIGN:
  case X509_V_ERR_KU_KEY_CERT_SIGN_INVALID_FOR_NON_CA:
  case X509_V_ERR_ISSUER_NAME_EMPTY:
  case X509_V_ERR_SUBJECT_NAME_EMPTY:
  case X509_V_ERR_EMPTY_SUBJECT_ALT_NAME:
  case X509_V_ERR_EMPTY_SUBJECT_SAN_NOT_CRITICAL:
  case X509_V_ERR_SIGNATURE_ALGORITHM_INCONSISTENCY:
  case X509_V_ERR_AUTHORITY_KEY_IDENTIFIER_CRITICAL:
  case X509_V_ERR_SUBJECT_KEY_IDENTIFIER_CRITICAL:
  case X509_V_ERR_EXTENSIONS_REQUIRE_VERSION_3: return true;
  // A certificate of version 1, or of version 3 without basic constraints.
  case X509_V_ERR_INVALID_CA: return !denies_authority(anchor);
  // Versions 1 and 2 have no extensions. For version 3, OpenSSL requires these extensions of an authority.
  case X509_V_ERR_INVALID_PURPOSE: return !denies_authority(anchor) && X509_get_version(anchor) != X509_VERSION_3;
  default: return false;
  }
}

// Ignores errors that RFC 5280 forbids issuers to make but that path validation (6.1) does not check, because self-made
// certificates often have them: missing key identifiers, which only help to find the issuer, and an anchor's statements
// about itself.
int larkspur_forgive(int is_good, X509_STORE_CTX *context) {
  if (is_good) return 1;
  int error = X509_STORE_CTX_get_error(context), depth = X509_STORE_CTX_get_error_depth(context);
  X509 *certificate = X509_STORE_CTX_get_current_cert(context);
  bool is_forgiven =
      error == X509_V_ERR_MISSING_SUBJECT_KEY_IDENTIFIER || error == X509_V_ERR_MISSING_AUTHORITY_KEY_IDENTIFIER ||
      (certificate && is_anchor(context, depth) && is_forgiven_for_anchor(error, certificate));
  if (is_forgiven) X509_STORE_CTX_set_error(context, X509_V_OK);
  return is_forgiven;
}

// MARK: - Chains

// The largest keys that are accepted. Verifying one signature takes 0.3 ms at 8,192 bits. With an exponent as long as
// the key, it takes 10 ms at 3,072 bits, where OpenSSL still allows such an exponent, and a chain has many signatures.
// Go has the same limit for RSA (CVE-2023-29409); OpenSSL limits the exponent of larger keys.
enum { key_bits_max = 8192, exponent_bits_max = 64 };

static bool is_key_too_large(const X509 *certificate) {
  const EVP_PKEY *key = X509_get0_pubkey(certificate);
  // OpenSSL reports the error of a key that cannot be read.
  if (!key) return false;
  if (EVP_PKEY_get_bits(key) > key_bits_max) return true;
  if (!EVP_PKEY_is_a(key, "RSA") && !EVP_PKEY_is_a(key, "RSA-PSS")) return false;
  BIGNUM *exponent = NULL;
  bool is_large = EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &exponent) == 1 &&
                  BN_num_bits(exponent) > exponent_bits_max;
  BN_free(exponent);
  return is_large;
}

typedef struct {
  const larkspur_host *host;
  // OpenSSL's own next step: signatures and dates.
  X509_STORE_CTX_verify_fn verify_signatures;
} expectation;

static int refuse(X509_STORE_CTX *context, int error, int depth) {
  X509_STORE_CTX_set_error(context, error);
  X509_STORE_CTX_set_error_depth(context, depth);
  return 0;
}

// Runs in place of OpenSSL's check of signatures, once a chain is built. Checks the host before signatures and dates,
// so that a caller that ignores an expired certificate does not also ignore a wrong host.
static int verify_host_and_signatures(X509_STORE_CTX *context) {
  const expectation *expected = X509_STORE_CTX_get_app_data(context);
  STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(context);
  int error = check_host(sk_X509_value(chain, 0), expected->host);
  if (error != X509_V_OK) return refuse(context, error, 0);
  for (int depth = 0; depth < sk_X509_num(chain); depth++)
    if (is_key_too_large(sk_X509_value(chain, depth))) return refuse(context, larkspur_v_key_too_large, depth);
  int verified = expected->verify_signatures(context);
  if (verified <= 0 || expected->host->name[0] == 0) return verified;
  // OpenSSL matches constraints against the names in the certificate. A wildcard can cover hosts that an issuer
  // excludes.
  for (int depth = 1; depth < sk_X509_num(chain); depth++)
    if (excludes(sk_X509_value(chain, depth), expected->host->name))
      return refuse(context, X509_V_ERR_EXCLUDED_VIOLATION, 0);
  return verified;
}

// Empties the error queue. Returns a message for the first system call that failed while OpenSSL looked for roots,
// unless the file did not exist.
static larkspur_bytes *take_complaint(void) {
  larkspur_bytes *complaint = NULL;
  const char *details;
  int flags;
  for (unsigned long code; (code = ERR_get_error_all(NULL, NULL, NULL, &details, &flags)) != 0;) {
    int number = ERR_SYSTEM_ERROR(code) ? ERR_GET_REASON(code) : 0;
    if (number == 0 || number == ENOENT || number == ENOTDIR || complaint) continue;
    complaint = larkspur_system_complaint((flags & ERR_TXT_STRING) != 0 ? details : "reading", number);
  }
  return complaint;
}

larkspur_tls_verification_result larkspur_verify_chain(X509_STORE_CTX *context, const larkspur_host *host) {
  larkspur_tls_verification_result result = {0};
  expectation expected = {host, X509_STORE_CTX_get_verify(context)};
  X509_STORE_CTX_set_app_data(context, &expected);
  X509_STORE_CTX_set_verify(context, verify_host_and_signatures);
  ERR_clear_error();
  int verified = X509_verify_cert(context);
  X509_STORE_CTX_set_verify(context, expected.verify_signatures);
  X509_STORE_CTX_set_app_data(context, NULL);
  result.complaint = take_complaint();
  int error = X509_STORE_CTX_get_error(context);
  // A failure without an error number (out of memory) must still be reported as a failure.
  result.error = verified == 1 ? X509_V_OK : error == X509_V_OK ? X509_V_ERR_UNSPECIFIED : error;
  result.depth = X509_STORE_CTX_get_error_depth(context);
  result.verified = X509_STORE_CTX_get1_chain(context);
  return result;
}

void larkspur_verify(X509_STORE *store, STACK_OF(X509) *sent, const char *name, const char *address, int64_t date,
                     bool any_anchor, larkspur_tls_verification_result *result) {
  *result = (larkspur_tls_verification_result){.error = X509_V_ERR_UNSPECIFIED};
  larkspur_host host;
  X509_STORE_CTX *context = X509_STORE_CTX_new();
  if (context && larkspur_chain_count(sent) > 0 && larkspur_host_set(&host, name, address) &&
      X509_STORE_CTX_init(context, store, sk_X509_value(sent, 0), sent) == 1) {
    X509_VERIFY_PARAM *rules = X509_STORE_CTX_get0_param(context);
    larkspur_verification_rules(rules);
    if (any_anchor) X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_PARTIAL_CHAIN);
    X509_VERIFY_PARAM_set_time(rules, (time_t)date);
    *result = larkspur_verify_chain(context, &host);
  }
  X509_STORE_CTX_free(context);
  ERR_clear_error();
}

// MARK: - Stapled responses

// Whether a time is after or before `date`, with a tolerance of five minutes for clocks.
static bool is_after(const ASN1_GENERALIZEDTIME *time, int64_t date) { return larkspur_seconds(time) > date + 300; }
static bool is_before(const ASN1_GENERALIZEDTIME *time, int64_t date) { return larkspur_seconds(time) < date - 300; }

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
  // A root is its own issuer.
  X509 *leaf = length > 0 ? sk_X509_value(verified, 0) : NULL;
  X509 *issuer = length > 1 ? sk_X509_value(verified, 1) : leaf;
  int reason, found = V_OCSP_CERTSTATUS_UNKNOWN;
  ASN1_GENERALIZEDTIME *this_update = NULL, *next_update = NULL;
  for (int index = 0; leaf && index < OCSP_resp_count(basic); index++) {
    OCSP_SINGLERESP *single = OCSP_resp_get0(basic, index);
    // The response identifies its certificate by a digest that it chooses.
    ASN1_OBJECT *digest = NULL;
    OCSP_id_get0_info(NULL, &digest, NULL, NULL, (OCSP_CERTID *)OCSP_SINGLERESP_get0_id(single));
    const EVP_MD *method = EVP_get_digestbyobj(digest);
    OCSP_CERTID_free(id);
    id = method ? OCSP_cert_to_id(method, leaf, issuer) : NULL;
    if (!id || OCSP_id_cmp(id, OCSP_SINGLERESP_get0_id(single)) != 0) continue;
    found = OCSP_single_get0_status(single, &reason, NULL, &this_update, &next_update);
    // A revocation outweighs other answers for the certificate. Without one, the last answer counts.
    if (found == V_OCSP_CERTSTATUS_REVOKED) break;
  }
  if (found == V_OCSP_CERTSTATUS_UNKNOWN) goto out;
  status = larkspur_ocsp_outdated;
  // An answer without an end of validity is valid for a day, because an old one must not be valid for ever.
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
#endif
