#ifdef __linux__
// The contents of certificates as bytes and text, chains, and the files that contain them.
#define _GNU_SOURCE
#include "CLarkspurOpenSSL.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static larkspur_bytes *copied(const void *bytes, size_t count) {
  larkspur_bytes *copy = bytes ? malloc(sizeof *copy + count) : NULL;
  if (!copy) return NULL;
  copy->count = count;
  memcpy(copy->bytes, bytes, count);
  return copy;
}

static larkspur_bytes *taken_out_of(BIO *bio) {
  char *bytes = NULL;
  long count = bio ? BIO_get_mem_data(bio, &bytes) : 0;
  larkspur_bytes *copy = count > 0 ? copied(bytes, (size_t)count) : NULL;
  BIO_free(bio);
  return copy;
}

// OpenSSL's own parser accepts "010.0.0.1" and "1.2.3.4 and more".
bool larkspur_is_ipv4_address(const char *text) {
  struct in_addr address;
  return inet_pton(AF_INET, text, &address) == 1;
}

larkspur_bytes *larkspur_canonical_ipv6_address(const char *text) {
  struct in6_addr address;
  char canonical[INET6_ADDRSTRLEN];
  if (inet_pton(AF_INET6, text, &address) != 1) return NULL;
  if (!inet_ntop(AF_INET6, &address, canonical, sizeof canonical)) return NULL;
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

larkspur_bytes *larkspur_certificate_der(const X509 *certificate) {
  unsigned char *bytes = NULL;
  int count = i2d_X509(certificate, &bytes);
  larkspur_bytes *copy = count > 0 ? copied(bytes, (size_t)count) : NULL;
  OPENSSL_free(bytes);
  return copy;
}

larkspur_bytes *larkspur_certificate_spki(const X509 *certificate) {
  unsigned char *bytes = NULL;
  int count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &bytes);
  larkspur_bytes *copy = count > 0 ? copied(bytes, (size_t)count) : NULL;
  OPENSSL_free(bytes);
  return copy;
}

larkspur_bytes *larkspur_name_text(const X509_NAME *name) {
  BIO *bio = name ? BIO_new(BIO_s_mem()) : NULL;
  // Leaves UTF-8 as it is and escapes control characters, so that a certificate cannot control a terminal.
  if (bio) X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  return taken_out_of(bio);
}

larkspur_bytes *larkspur_name_der(const X509_NAME *name) {
  unsigned char *bytes = NULL;
  int count = name ? i2d_X509_NAME(name, &bytes) : 0;
  larkspur_bytes *copy = count > 0 ? copied(bytes, (size_t)count) : NULL;
  OPENSSL_free(bytes);
  return copy;
}

larkspur_bytes *larkspur_certificate_serial(const X509 *certificate) {
  const ASN1_INTEGER *serial = X509_get0_serialNumber(certificate);
  return copied(ASN1_STRING_get0_data(serial), (size_t)ASN1_STRING_length(serial));
}

int64_t larkspur_seconds(const ASN1_TIME *time) {
  struct tm parts;
  if (!time || ASN1_TIME_to_tm(time, &parts) != 1) return INT64_MIN;
  return (int64_t)timegm(&parts);
}

int64_t larkspur_certificate_not_before(const X509 *certificate) { return larkspur_seconds(X509_get0_notBefore(certificate)); }
int64_t larkspur_certificate_not_after(const X509 *certificate) { return larkspur_seconds(X509_get0_notAfter(certificate)); }

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

// MARK: - Files

// Whether a loop over PEM blocks ended because there were no more, and not at a damaged block.
static bool is_end_of_pem(void) {
  unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

// Returns the next line that begins a PEM block, or the end.
static const char *next_block(const char *bytes, const char *end) {
  static const char head[] = "-----BEGIN ";
  for (const char *place = bytes; place < end; place++) {
    place = memmem(place, (size_t)(end - place), head, sizeof head - 1);
    if (!place) break;
    if (place == bytes || place[-1] == '\n' || place[-1] == '\r') return place;
  }
  return end;
}

// Parses each block separately, so that a damaged one does not affect the others. Skips blocks of other kinds. Passes
// an empty password for encrypted blocks, because OpenSSL would otherwise ask for one at the terminal.
static bool read_pem_certificates(const char *bytes, size_t count, STACK_OF(X509) *chain, int *damaged) {
  const char *end = bytes + count;
  for (const char *block = next_block(bytes, end); block < end;) {
    const char *next = next_block(block + 1, end);
    BIO *bio = BIO_new_mem_buf(block, (int)(next - block));
    X509 *certificate = bio ? PEM_read_bio_X509_AUX(bio, NULL, NULL, (void *)"") : NULL;
    if (!certificate && bio && !is_end_of_pem()) ++*damaged;
    BIO_free(bio);
    if (!bio) return false;
    if (certificate && sk_X509_push(chain, certificate) <= 0) {
      X509_free(certificate);
      return false;
    }
    block = next;
  }
  return true;
}

X509 *larkspur_read_certificate(const void *bytes, size_t count) {
  ERR_clear_error();
  const unsigned char *next = bytes;
  X509 *certificate = count <= INT32_MAX ? d2i_X509(NULL, &next, (long)count) : NULL;
  // Bytes behind the certificate would not be checked.
  if (certificate && next != (const unsigned char *)bytes + count) {
    X509_free(certificate);
    certificate = NULL;
  }
  ERR_clear_error();
  return certificate;
}

STACK_OF(X509) *larkspur_read_certificates(const void *bytes, size_t count, int *damaged) {
  ERR_clear_error();
  *damaged = 0;
  if (count > INT32_MAX) return NULL;
  STACK_OF(X509) *chain = sk_X509_new_null();
  bool good = chain && read_pem_certificates(bytes, count, chain, damaged);
  if (good && sk_X509_num(chain) == 0) {
    X509 *certificate = *damaged == 0 ? larkspur_read_certificate(bytes, count) : NULL;
    good = certificate && sk_X509_push(chain, certificate) > 0;
    if (!good) X509_free(certificate);
  }
  ERR_clear_error();
  if (good) return chain;
  larkspur_chain_free(chain);
  return NULL;
}

// MARK: - The system's roots

// Returns the value of an environment variable, or NULL if it is empty. If the process has more rights than its caller,
// the environment is ignored (secure_getenv), as in OpenSSL.
static const char *named(const char *variable) {
  const char *value = secure_getenv(variable);
  return value && *value ? value : NULL;
}

const char *larkspur_named_root_file(void) { return named(X509_get_default_cert_file_env()); }

const char *larkspur_named_root_folders(void) { return named(X509_get_default_cert_dir_env()); }

static larkspur_bytes *sentence(const char *format, const char *one, const char *two) {
  char *text = NULL;
  int count = asprintf(&text, format, one, two);
  larkspur_bytes *copy = count > 0 ? copied(text, (size_t)count) : NULL;
  if (count >= 0) free(text);
  return copy;
}

larkspur_bytes *larkspur_system_complaint(const char *what, int error) {
#ifdef __GLIBC__
  const char *message = strerrordesc_np(error);
#else
  const char *message = strerror(error);
#endif
  return sentence("%s: %s", what, message ? message : "unknown error");
}

// Maximum size of a root file. A larger file does not contain certificates.
enum { root_file_bytes_max = 1 << 26 };

// Reads a file. Returns 0 or an error number.
static int read_file(const char *path, uint8_t **bytes, size_t *size) {
  int file = open(path, O_RDONLY | O_CLOEXEC), error = 0;
  if (file < 0) return errno;
  size_t room = 0;
  while (error == 0) {
    if (*size == room) {
      room = room > 0 ? room * 2 : 1 << 16;
      uint8_t *larger = room <= root_file_bytes_max ? realloc(*bytes, room) : NULL;
      if (!larger) error = room <= root_file_bytes_max ? ENOMEM : EFBIG;
      if (!larger) break;
      *bytes = larger;
    }
    ssize_t count = read(file, *bytes + *size, room - *size);
    if (count == 0) break;
    if (count > 0) *size += (size_t)count;
    else if (errno != EINTR) error = errno;
  }
  close(file);
  return error;
}

// Adds the certificates of a file to the store. Returns 0 or an error number.
static int add_file(X509_STORE *store, const char *path, int *found) {
  uint8_t *bytes = NULL;
  size_t count = 0;
  int error = read_file(path, &bytes, &count), damaged;
  STACK_OF(X509) *chain = error == 0 ? larkspur_read_certificates(bytes, count, &damaged) : NULL;
  for (; error == 0 && *found < larkspur_chain_count(chain); ++*found)
    if (X509_STORE_add_cert(store, sk_X509_value(chain, *found)) != 1) error = ENOMEM;
  larkspur_chain_free(chain);
  free(bytes);
  ERR_clear_error();
  return error;
}

static bool is_missing(int error) { return error == ENOENT || error == ENOTDIR; }

// Whether one of the directories, which colons separate, has an entry.
static bool have_entries(const char *folders) {
  char *list = strdup(folders), *rest = list, *path;
  bool found = !list;
  while (!found && (path = strsep(&rest, ":"))) {
    DIR *folder = opendir(path);
    // A directory that cannot be opened now may have entries. OpenSSL tries it again with each chain.
    found = !folder && !is_missing(errno);
    for (struct dirent *entry; !found && folder && (entry = readdir(folder));) found = entry->d_name[0] != '.';
    if (folder) closedir(folder);
  }
  free(list);
  return found;
}

int larkspur_add_root_folders(X509_STORE *store, const char *named_folders) {
  const char *folders = named_folders ? named_folders : X509_get_default_cert_dir();
  X509_LOOKUP *folder = X509_STORE_add_lookup(store, X509_LOOKUP_hash_dir());
  X509_LOOKUP *other = X509_STORE_add_lookup(store, X509_LOOKUP_store());
  if (folder) X509_LOOKUP_add_dir(folder, folders, X509_FILETYPE_PEM);
  if (other) X509_LOOKUP_add_store(other, NULL);
  ERR_clear_error();
  return folder && other;
}

int larkspur_add_root_files(X509_STORE *store, const char *path) {
  DIR *folder = opendir(path);
  int all = 0;
  for (struct dirent *entry; folder && (entry = readdir(folder));) {
    char *file = NULL;
    int found = 0;
    if (entry->d_name[0] == '.' || asprintf(&file, "%s/%s", path, entry->d_name) < 0) continue;
    add_file(store, file, &found);
    free(file);
    all += found;
  }
  if (folder) closedir(folder);
  return all;
}

larkspur_bytes *larkspur_add_root_file(X509_STORE *store, const char *named_file, const char *named_folders,
                                       bool *is_empty) {
  *is_empty = false;
  const char *file = named_file ? named_file : X509_get_default_cert_file();
  const char *folders = named_folders ? named_folders : X509_get_default_cert_dir();
  int found = 0, error = add_file(store, file, &found);
  if (error == 0 && found > 0) return NULL;
  if (error != 0 && (named_file || !(is_missing(error) || error == EISDIR)))
    return larkspur_system_complaint(file, error);
  if (named_file) return sentence("%s: %s", file, "it holds no certificate that can be read");
  if (have_entries(folders)) return NULL;
  *is_empty = true;
  return sentence("neither %s nor %s holds a certificate", file, folders);
}

// MARK: - Revocation lists

int larkspur_read_revocation_lists(X509_STORE *store, const void *bytes, size_t count) {
  ERR_clear_error();
  if (count > INT32_MAX) return -1;
  BIO *bio = BIO_new_mem_buf(bytes, (int)count);
  X509_CRL *list;
  int found = 0;
  bool good = bio != NULL;
  while (good && (list = PEM_read_bio_X509_CRL(bio, NULL, NULL, (void *)""))) {
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
  // The decoders' ERR_R_UNSUPPORTED is not included: it stands for any data that no decoder can read.
  case ERR_LIB_EVP:
    return reason == ERR_R_UNSUPPORTED || reason == EVP_R_UNSUPPORTED_ALGORITHM || reason == EVP_R_UNSUPPORTED_CIPHER ||
           reason == EVP_R_UNSUPPORTED_KEY_DERIVATION_FUNCTION || reason == EVP_R_UNSUPPORTED_PRF ||
           reason == EVP_R_UNKNOWN_PBE_ALGORITHM || reason == EVP_R_UNKNOWN_CIPHER || reason == EVP_R_UNKNOWN_DIGEST ||
           reason == EVP_R_MEMORY_LIMIT_EXCEEDED || reason == EVP_R_ILLEGAL_SCRYPT_PARAMETERS;
  case ERR_LIB_PEM: return reason == PEM_R_UNSUPPORTED_CIPHER || reason == PEM_R_UNSUPPORTED_ENCRYPTION;
  case ERR_LIB_PKCS12:
    return reason == PKCS12_R_UNKNOWN_DIGEST_ALGORITHM || reason == PKCS12_R_UNSUPPORTED_PKCS12_MODE;
  default: return false;
  }
}

static bool means_wrong_password(unsigned long error) {
  return ERR_GET_LIB(error) == ERR_LIB_PKCS12 && ERR_GET_REASON(error) == PKCS12_R_MAC_VERIFY_FAILURE;
}

// Returns the reason why a secret could not be read, and empties the error queue. A missing algorithm takes precedence,
// because OpenSSL then also reports a wrong digest. An archive without a digest cannot have a wrong password.
static larkspur_secret_failure take_secret_failure(void) {
  larkspur_secret_failure failure = larkspur_secret_unreadable;
  bool has_digest = true;
  for (unsigned long error; (error = ERR_get_error()) != 0;) {
    if (ERR_GET_LIB(error) == ERR_LIB_PKCS12 && ERR_GET_REASON(error) == PKCS12_R_MAC_ABSENT) has_digest = false;
    if (means_unsupported(error)) failure = larkspur_secret_unsupported;
    else if (failure == larkspur_secret_unreadable && has_digest && means_wrong_password(error))
      failure = larkspur_secret_needs_password;
  }
  return failure;
}

// Whether the older PEM encryption (RFC 1421 4.6.1.3) names a cipher that is missing. OpenSSL does not report this.
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
  if (!key && *failure == larkspur_secret_unreadable) {
    // OpenSSL does not ask for a password if it does not support the cipher.
    if (names_missing_cipher(bytes, count)) *failure = larkspur_secret_unsupported;
    else if (source.asked) *failure = larkspur_secret_needs_password;
  }
  ERR_clear_error();
  return key;
}

larkspur_bytes *larkspur_key_der(const EVP_PKEY *key) {
  unsigned char *bytes = NULL;
  int count = i2d_PrivateKey((EVP_PKEY *)key, &bytes);
  larkspur_bytes *copy = count > 0 ? copied(bytes, (size_t)count) : NULL;
  if (count > 0) OPENSSL_clear_free(bytes, (size_t)count);
  return copy;
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
#endif
