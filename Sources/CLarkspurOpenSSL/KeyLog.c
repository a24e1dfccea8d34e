#ifdef __linux__
// The log of TLS keys of a context: a file of one user, with which the user's traffic can be decrypted.
#include "CLarkspurOpenSSL.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int key_log_index = -1;
static CRYPTO_ONCE key_log_once = CRYPTO_ONCE_STATIC_INIT;

// The context holds the descriptor plus one, so that null means no descriptor.
static int key_log_descriptor(const void *stored) { return (int)(intptr_t)stored - 1; }

static void close_key_log(void *parent, void *stored, CRYPTO_EX_DATA *data, int index, long number, void *pointer) {
  (void)parent, (void)data, (void)index, (void)number, (void)pointer;
  if (stored) close(key_log_descriptor(stored));
}

static void make_key_log_index(void) {
  key_log_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, close_key_log);
}

static void log_key(const SSL *ssl, const char *line) {
  int file = key_log_descriptor(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), key_log_index));
  // One write, so that lines of other threads and processes stay whole.
  struct iovec parts[] = {{(void *)line, strlen(line)}, {"\n", 1}};
  ssize_t written = file >= 0 ? writev(file, parts, 2) : 0;
  // A lost line only prevents debugging, and is no reason to end the connection.
  (void)written;
}

// With the file, the traffic can be decrypted. The file is created with access for its owner only. An existing file
// must be a regular file of the current user without access for others. A symbolic link is not followed: in a directory
// where others may write, such as /tmp, it could lead to any of the user's files. O_NONBLOCK keeps a pipe from blocking
// the open until it has a reader.
static int open_key_log(const char *path, const char **refusal) {
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR);
  if (file < 0) {
    *refusal = errno == ELOOP ? "it is a symbolic link" : strerror(errno);
    return -1;
  }
  struct stat facts;
  if (fstat(file, &facts) != 0) {
    *refusal = strerror(errno);
  } else if (!S_ISREG(facts.st_mode)) {
    *refusal = "it is no regular file";
  } else if (facts.st_uid != geteuid()) {
    *refusal = "it belongs to another user";
  } else if (facts.st_mode & (S_IRWXG | S_IRWXO)) {
    *refusal = "others have access to it";
  } else {
    return file;
  }
  close(file);
  return -1;
}

static int set_key_log(SSL_CTX *context, int file) {
  if (CRYPTO_THREAD_run_once(&key_log_once, make_key_log_index) != 1 || key_log_index < 0) return 0;
  if (!SSL_CTX_set_ex_data(context, key_log_index, (void *)(intptr_t)(file + 1))) return 0;
  SSL_CTX_set_keylog_callback(context, log_key);
  return 1;
}

const char *larkspur_tls_context_log_keys(SSL_CTX *context, const char *path) {
  const char *refusal = NULL;
  int file = open_key_log(path, &refusal);
  if (file < 0) return refusal;
  if (set_key_log(context, file)) return NULL;
  close(file);
  return "out of memory";
}
#endif
