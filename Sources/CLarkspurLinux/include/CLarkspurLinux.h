// Kernel calls that Glibc's module map leaves out, or that it declares in a form that Swift cannot call (variadic
// functions, macros, unions). All are `static inline`, except the signal handling and the processor count.
#if defined(__linux__) && !defined(LARKSPUR_LINUX_H)
#define LARKSPUR_LINUX_H

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#ifdef __GLIBC__
#include <linux/stat.h>
#endif
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// glibc declares these functions only under _GNU_SOURCE. Defining that here would give Swift a second view of
// headers that it has imported already.
extern int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags);
extern int pthread_setname_np(pthread_t thread, const char *name);
extern int pipe2(int ends[2], int flags);
extern ssize_t splice(int source, __off64_t *source_offset, int target, __off64_t *target_offset, size_t count,
                      unsigned int flags);
extern int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *deadline);

// An event of the poller, with the meaning that Larkspur gives to epoll_event's union: a slot and its registration.
struct larkspur_event {
  uint32_t events;
  uint32_t slot;
  uint32_t registration;
};

// Closes a descriptor that is not to be used because of `error`. Returns -1 with that error.
static inline int larkspur_close_failed(int descriptor, int error) {
  close(descriptor);
  errno = error;
  return -1;
}

static inline int larkspur_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

static inline int larkspur_epoll_add(int poller, int descriptor, uint32_t events, uint32_t slot,
                                     uint32_t registration) {
  struct epoll_event event = {.events = events, .data.u64 = ((uint64_t)registration << 32) | slot};
  return epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event);
}

enum { LARKSPUR_EVENTS_MAX = 128 };

// Waits, and then unpacks the kernel's packed events for Swift.
//
// Performance: in the C library, epoll_wait, send and recv are cancellation points, which cost two atomic operations
// for each call. A thread that runs Swift code must not be cancelled, so these three calls, which each request makes,
// use `syscall` (decision 22).
static inline int larkspur_epoll_wait(int poller, struct larkspur_event *out, int capacity,
                                      int timeout_milliseconds) {
  struct epoll_event events[LARKSPUR_EVENTS_MAX];
  if (capacity > LARKSPUR_EVENTS_MAX) capacity = LARKSPUR_EVENTS_MAX;
  int count = (int)syscall(SYS_epoll_pwait, poller, events, capacity, timeout_milliseconds, NULL, 0);
  for (int i = 0; i < count; i++) {
    out[i].events = events[i].events;
    out[i].slot = (uint32_t)events[i].data.u64;
    out[i].registration = (uint32_t)(events[i].data.u64 >> 32);
  }
  return count;
}

static inline int larkspur_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

static inline int larkspur_timerfd(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); }

// Sets the timer to a moment of the monotonic clock. A value of 0 would stop it.
static inline int larkspur_timerfd_set(int descriptor, uint64_t nanoseconds) {
  if (nanoseconds == 0) nanoseconds = 1;
  struct itimerspec time = {
      .it_value = {.tv_sec = (time_t)(nanoseconds / 1000000000), .tv_nsec = (long)(nanoseconds % 1000000000)}};
  return timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &time, NULL);
}

static inline int larkspur_socket(int family, int type) {
  return socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// glibc declares `const struct sockaddr *` as a transparent union, which Swift cannot pass.
static inline int larkspur_connect(int descriptor, const void *address, socklen_t length) {
  return connect(descriptor, (const struct sockaddr *)address, length);
}

static inline int larkspur_bind(int descriptor, const void *address, socklen_t length) {
  return bind(descriptor, (const struct sockaddr *)address, length);
}

static inline ssize_t larkspur_send(int descriptor, const void *bytes, size_t count) {
  return syscall(SYS_sendto, descriptor, bytes, count, MSG_NOSIGNAL, NULL, 0);
}

static inline ssize_t larkspur_receive(int descriptor, void *buffer, size_t capacity) {
  return syscall(SYS_recvfrom, descriptor, buffer, capacity, 0, NULL, NULL);
}

static inline ssize_t larkspur_send_gathered(int descriptor, struct iovec *list, size_t count) {
  struct msghdr message = {.msg_iov = list, .msg_iovlen = count};
  return sendmsg(descriptor, &message, MSG_NOSIGNAL);
}

// The number of processors that the process may run on, at least 1.
int larkspur_processor_count(void);

// sendfile raises SIGPIPE like a write, and has no flag to prevent it. The signal is blocked during the call, and taken
// back if it was raised. SIGPIPE is also raised when the connection breaks after a part of the bytes.
static inline ssize_t larkspur_sendfile(int descriptor, int file, int64_t offset, size_t count) {
  sigset_t pipe, before, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  int was_pending = sigismember(&pending, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  off_t position = (off_t)offset;
  ssize_t sent = sendfile(descriptor, file, &position, count);
  int error = errno;
  if ((sent < 0 ? error == EPIPE : (size_t)sent < count) && !was_pending) {
    struct timespec none = {0, 0};
    while (sigtimedwait(&pipe, NULL, &none) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = error;
  return sent;
}

// The flags are SPLICE_F_MOVE | SPLICE_F_NONBLOCK, by their values: glibc hides the constants without _GNU_SOURCE.
static inline ssize_t larkspur_splice(int source, int target, size_t count) {
  return splice(source, NULL, target, NULL, count, 1 | 2);
}

struct larkspur_pipe_ends {
  int reading;
  int writing;
};

// F_SETPIPE_SZ (1031) requests 1 MiB, the default maximum for an unprivileged user. A smaller pipe works, too.
static inline int larkspur_pipe(struct larkspur_pipe_ends *ends) {
  int pair[2];
  if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
  fcntl(pair[1], 1031, 1 << 20);
  ends->reading = pair[0];
  ends->writing = pair[1];
  return 0;
}

// The kernel's message for an error number, in the caller's buffer.
static inline const char *larkspur_error_message(int number, char *buffer, size_t capacity) {
  return strerror_r(number, buffer, capacity) == 0 ? buffer : "Unknown error";
}

static inline int larkspur_errno(void) { return errno; }
static inline void larkspur_clear_errno(void) { errno = 0; }

// The port to which a socket is bound, or -1 on an error.
static inline int larkspur_local_port(int descriptor) {
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  if (getsockname(descriptor, (struct sockaddr *)&address, &length) != 0) return -1;
  if (address.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
  return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

static inline int larkspur_blocking_socket(int family) { return socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0); }

static inline int larkspur_blocking_accept(int listener) { return accept4(listener, NULL, NULL, SOCK_CLOEXEC); }

// POLLRDHUP by its value, because glibc hides it without _GNU_SOURCE.
enum { LARKSPUR_POLLRDHUP = 0x2000 };

// Errors of getaddrinfo by their values, because glibc hides them without _GNU_SOURCE: the name has no address of the
// requested family, or no address at all.
enum { LARKSPUR_EAI_ADDRFAMILY = -9, LARKSPUR_EAI_NODATA = -5 };

// Waits until the peer ends its sending side, or the connection breaks or is shut down. Bytes that arrive meanwhile
// stay unread. Returns 1, or 0 after the timeout, or -1 with errno. A negative timeout waits without limit.
static inline int larkspur_wait_for_peer_end(int descriptor, int timeout_milliseconds) {
  struct pollfd wanted = {.fd = descriptor, .events = LARKSPUR_POLLRDHUP};
  return poll(&wanted, 1, timeout_milliseconds);
}

// Sets the time that each `connect` and `send` of a blocking socket may take (SO_SNDTIMEO). 0 stands for no limit.
static inline int larkspur_set_send_timeout(int descriptor, int milliseconds) {
  struct timeval time = {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000};
  return setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

// Waits for an event. Returns 1, or 0 after the timeout, or -1 with errno. A negative timeout waits without limit.
static inline int larkspur_wait_for_event(int descriptor, short event, int timeout_milliseconds) {
  struct pollfd wanted = {.fd = descriptor, .events = event};
  return poll(&wanted, 1, timeout_milliseconds);
}

// Returns a descriptor that tells when a name goes out of a directory, or the directory itself goes away, or -1 with
// errno.
int larkspur_watch_removals(const char *folder);

// Blocks until an event that may concern the name has come. Returns 0, or -1 with errno.
int larkspur_wait_for_removal(int watch, const char *name);

// Whether bytes, the end of the stream or an error can be read without blocking.
static inline int larkspur_is_readable(int descriptor) {
  return larkspur_wait_for_event(descriptor, POLLIN, 0) == 1;
}

// Waits for the semaphore until a moment on the monotonic clock. Returns 0 if it was decremented, or -1 with errno.
static inline int larkspur_semaphore_wait(sem_t *semaphore, uint64_t deadline_nanoseconds) {
  struct timespec deadline = {.tv_sec = (time_t)(deadline_nanoseconds / 1000000000u),
                              .tv_nsec = (long)(deadline_nanoseconds % 1000000000u)};
  return sem_clockwait(semaphore, CLOCK_MONOTONIC, &deadline);
}

static inline uint64_t larkspur_monotonic_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// The time since the machine's start, with the time for which it slept.
static inline double larkspur_seconds_since_boot(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline double larkspur_wall_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// The calling thread's identity as a number. Performance: one register read.
static inline uint64_t larkspur_thread_identity(void) { return (uint64_t)pthread_self(); }

static inline void larkspur_make_adaptive_mutex(pthread_mutex_t *mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
  pthread_mutex_init(mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

static inline void larkspur_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

static inline int larkspur_set_integer_option(int descriptor, int level, int name, int value) {
  return setsockopt(descriptor, level, name, &value, sizeof value);
}

// Binds the socket to an interface. The caller must check the name: an empty name would remove the binding, and a name
// of more than IFNAMSIZ - 1 bytes would be truncated.
static inline int larkspur_bind_to_interface(int descriptor, const char *name) {
  return setsockopt(descriptor, SOL_SOCKET, SO_BINDTODEVICE, name, (socklen_t)strlen(name) + 1);
}

// Makes `connect` choose the port if `bind` leaves it open. Connections to different destinations may share the port.
static inline int larkspur_defer_port(int descriptor) {
  int on = 1;
  return setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
}

static inline int larkspur_pending_error(int descriptor) {
  int value = 0;
  socklen_t length = sizeof value;
  if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &value, &length) != 0) return errno;
  return value;
}

// Makes close send RST in place of FIN, by a linger time of zero. A test server resets a connection with it.
static inline int larkspur_linger_zero(int descriptor) {
  struct linger off = {.l_onoff = 1, .l_linger = 0};
  return setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &off, sizeof off);
}

// Catches SIGINT, SIGTERM and SIGHUP, once each: notes the signal, and makes the wake-up descriptor (an eventfd)
// readable.
void larkspur_catch_ending_signals(int wake_up_descriptor);

// Makes blocking calls fail with EINTR after `from_nanoseconds` and then every 50 ms, so that their callers can check
// the time. Call `larkspur_catch_ending_signals` first.
void larkspur_interrupt_calls(uint64_t from_nanoseconds);

// The signal that was caught last, or 0.
int larkspur_caught_signal(void);

// Makes a write to a pipe without a reader fail with EPIPE. By default it ends the process.
static inline void larkspur_ignore_broken_pipes(void) { signal(SIGPIPE, SIG_IGN); }

static inline int larkspur_open_for_reading(const char *path) { return open(path, O_RDONLY | O_CLOEXEC); }

// Opens a regular file. Fails with EINVAL for any other kind of file, and, if `names` is not 0, with EPERM for a file with
// another number of names. O_NONBLOCK, because opening a pipe would otherwise wait for a writer.
static inline int larkspur_open_regular(const char *path, int flags, nlink_t names) {
  int file = open(path, flags | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return -1;
  struct stat facts;
  if (fstat(file, &facts) != 0) return larkspur_close_failed(file, errno);
  if (!S_ISREG(facts.st_mode)) return larkspur_close_failed(file, EINVAL);
  if (names != 0 && facts.st_nlink != names) return larkspur_close_failed(file, EPERM);
  return file;
}

static inline int larkspur_open_regular_for_reading(const char *path) {
  return larkspur_open_regular(path, O_RDONLY, 0);
}

// Opens a regular file to change it. Fails with EPERM if the file has another name: it may be another program's.
static inline int larkspur_open_regular_for_updating(const char *path) {
  return larkspur_open_regular(path, O_RDWR | O_NOFOLLOW, 1);
}

static inline int larkspur_open_for_writing(const char *path) {
  return open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
}

// Creates a file. Fails with EEXIST if the path exists, even as a symbolic link, which another user may have placed.
static inline int larkspur_create_file(const char *path) {
  return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

// Creates a file without a name in a directory, for writing. Fails where the file system has no such files, or where
// `larkspur_link_file` could not give the file a name later. The process's umask applies to the permissions.
static inline int larkspur_create_nameless_file(const char *folder) {
  const int nameless = 020000000 | O_DIRECTORY;  // O_TMPFILE, which glibc declares only under _GNU_SOURCE
  if (access("/proc/self/fd", X_OK) != 0) return -1;
  return open(folder, nameless | O_WRONLY | O_CLOEXEC, 0600);
}

// Gives a nameless file its name. Fails with EEXIST if the name is in use. The form of linkat(2) that needs no privilege.
static inline int larkspur_link_file(int file, int folder, const char *name) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  return linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW);
}

// Opens a directory of the current user for private use, and creates it if `create` is set. Removes the access of other
// users. Refuses a symbolic link and a directory of another user: if another user created the directory first, for
// example under /tmp, that user could read the files in it.
static inline int larkspur_open_private_folder(const char *path, int create) {
  if (create && mkdir(path, 0700) != 0 && errno != EEXIST) return -1;
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return -1;
  struct stat facts;
  if (fstat(folder, &facts) != 0) return larkspur_close_failed(folder, errno);
  if (facts.st_uid != geteuid()) return larkspur_close_failed(folder, EPERM);
  if ((facts.st_mode & 077) != 0 && fchmod(folder, 0700) != 0) return larkspur_close_failed(folder, errno);
  return folder;
}

static inline int larkspur_open_in_folder(int folder, const char *name) {
  return openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

static inline int larkspur_open_lock_in_folder(int folder, const char *name) {
  return openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

// Whether the name in the directory leads to this open file.
static inline int larkspur_is_named_in_folder(int folder, const char *name, int file) {
  struct stat open, named;
  return fstat(file, &open) == 0 && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

static inline int larkspur_create_in_folder(int folder, const char *name) {
  return openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

// The size in bytes, and the times of access and modification in seconds since 1970.
struct larkspur_file_facts {
  int64_t size;
  double used;
  double changed;
};

static inline double larkspur_seconds(struct timespec time) { return (double)time.tv_sec + (double)time.tv_nsec / 1e9; }

// Returns -1 if the file is not a regular file, or does not exist.
static inline int larkspur_facts_in_folder(int folder, const char *name, struct larkspur_file_facts *out) {
  struct stat facts;
  if (fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(facts.st_mode)) return -1;
  out->size = facts.st_size;
  out->used = larkspur_seconds(facts.st_atim);
  out->changed = larkspur_seconds(facts.st_mtim);
  return 0;
}

// Returns the next name, or NULL at the end.
static inline const char *larkspur_next_name(DIR *list) {
  struct dirent *entry = readdir(list);
  return entry ? entry->d_name : NULL;
}

static inline DIR *larkspur_list_folder(int folder) {
  int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return NULL;
  DIR *list = fdopendir(own);
  if (!list) larkspur_close_failed(own, errno);
  return list;
}

// Converts seconds since 1970. NaN and values out of range leave the file's time as it is.
static inline struct timespec larkspur_timespec(double seconds) {
  struct timespec time = {.tv_sec = 0, .tv_nsec = UTIME_OMIT};
  if (!(seconds > -1e10 && seconds < 1e10)) return time;
  time.tv_sec = (time_t)seconds;
  if ((double)time.tv_sec > seconds) time.tv_sec -= 1;
  long nanoseconds = (long)((seconds - (double)time.tv_sec) * 1e9);
  time.tv_nsec = nanoseconds < 0 ? 0 : nanoseconds > 999999999 ? 999999999 : nanoseconds;
  return time;
}

static inline int larkspur_set_times_in_folder(int folder, const char *name, double used, double changed) {
  struct timespec times[2] = {larkspur_timespec(used), larkspur_timespec(changed)};
  return utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW);
}

static inline int larkspur_wait_until_writable(int descriptor) {
  struct pollfd wanted = {.fd = descriptor, .events = POLLOUT};
  return poll(&wanted, 1, -1);
}

// The `st_mode` of a path (symbolic links followed) or of a descriptor, or -1 with errno.
static inline long larkspur_mode_of_path(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 ? (long)status.st_mode : -1;
}

// Whether the file or directory belongs to root or to the effective user, and not every user may write to it.
static inline int larkspur_is_guarded(const char *path) {
  struct stat status;
  if (stat(path, &status) != 0) return 0;
  return (status.st_uid == 0 || status.st_uid == geteuid()) && (status.st_mode & S_IWOTH) == 0;
}

static inline long larkspur_mode_of_descriptor(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 ? (long)status.st_mode : -1;
}

// The facts that recognize a file's content without reading it.
struct larkspur_file_status {
  int64_t size;
  int64_t modification_seconds;
  uint32_t modification_nanoseconds;
  uint64_t inode;
};

// Returns 0, or -1 with errno.
static inline int larkspur_status_of_descriptor(int descriptor, struct larkspur_file_status *result) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return -1;
  result->size = status.st_size;
  result->modification_seconds = status.st_mtim.tv_sec;
  result->modification_nanoseconds = (uint32_t)status.st_mtim.tv_nsec;
  result->inode = status.st_ino;
  return 0;
}

enum {
  LARKSPUR_MODE_TYPE = S_IFMT,
  LARKSPUR_MODE_REGULAR = S_IFREG,
  LARKSPUR_MODE_DIRECTORY = S_IFDIR,
};

// The width of the terminal, or 0 if it is unknown or the descriptor is not a terminal.
static inline int larkspur_terminal_columns(int descriptor) {
  struct winsize size;
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// Opens a socket to the kernel's network configuration. It receives the changes in `groups`; 0 means none.
static inline int larkspur_open_netlink(uint32_t groups, int is_blocking) {
  int type = SOCK_RAW | SOCK_CLOEXEC | (is_blocking ? 0 : SOCK_NONBLOCK);
  int descriptor = socket(AF_NETLINK, type, NETLINK_ROUTE);
  if (descriptor < 0) return -1;
  struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
  // The kernel answers at once. If it ever does not, the caller must not block for ever.
  struct timeval patience = {.tv_sec = 2};
  if (bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0 ||
      setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
    return larkspur_close_failed(descriptor, errno);
  }
  return descriptor;
}

enum {
  LARKSPUR_NETLINK_GROUPS = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE,
};

// Receives one datagram. Returns its length, which is more than `capacity` if it was truncated, or 0 if the kernel did
// not send it.
static inline ssize_t larkspur_receive_netlink(int descriptor, void *buffer, size_t capacity) {
  struct sockaddr_nl sender;
  struct iovec room = {.iov_base = buffer, .iov_len = capacity};
  struct msghdr message = {.msg_name = &sender, .msg_namelen = sizeof sender, .msg_iov = &room, .msg_iovlen = 1};
  ssize_t length = recvmsg(descriptor, &message, MSG_TRUNC);
  if (length < 0) return length;
  return message.msg_namelen == sizeof sender && sender.nl_pid == 0 ? length : 0;
}

// Opens a file for writing, and creates it with mode 0600 if `flags` say so. Fails with EPERM for anything but a regular
// file of the current user with one name, of that size unless `size` is negative.
static inline int larkspur_open_own_in_folder(int folder, const char *name, int flags, int64_t size) {
  int file = openat(folder, name, flags | O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  if (file < 0) return -1;
  struct stat facts;
  if (fstat(file, &facts) != 0) return larkspur_close_failed(file, errno);
  int is_own = S_ISREG(facts.st_mode) && facts.st_uid == geteuid() && facts.st_nlink == 1;
  return is_own && (size < 0 || facts.st_size == size) ? file : larkspur_close_failed(file, EPERM);
}

// Opens a file of this size to append to it.
static inline int larkspur_open_part_in_folder(int folder, const char *name, int64_t size) {
  return larkspur_open_own_in_folder(folder, name, 0, size);
}

// Opens a file for writing behind its end, wherever that is at each write, and creates it if there is none.
static inline int larkspur_open_appending_in_folder(int folder, const char *name) {
  return larkspur_open_own_in_folder(folder, name, O_APPEND | O_CREAT, -1);
}

static inline int larkspur_cut_file(int descriptor, int64_t size) {
  if (ftruncate(descriptor, size) != 0) return -1;
  return lseek(descriptor, size, SEEK_SET) == size ? 0 : -1;
}

// The functions below take names of entries of a directory. None follows a symbolic link of that name.

static inline int larkspur_open_directory(const char *path) {
  return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static inline int larkspur_open_directory_in_folder(int folder, const char *name) {
  return openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// Opens a directory that the user may enter, and need not be able to list.
static inline int larkspur_enter_directory_in_folder(int folder, const char *name) {
  const int path_only = 010000000;  // O_PATH, which glibc declares only under _GNU_SOURCE
  return openat(folder, name, path_only | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// Creates a file. Fails with EEXIST if the name is in use. The process's umask applies to the permissions.
static inline int larkspur_create_file_in_folder(int folder, const char *name, unsigned permissions) {
  return openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)permissions);
}

// The owner, the group and the `st_mode` of an entry.
struct larkspur_access {
  uint32_t user;
  uint32_t group;
  uint32_t mode;
};

// Returns 0, or -1 with errno. The name "." stands for the directory.
static inline int larkspur_access_in_folder(int folder, const char *name, struct larkspur_access *access) {
  struct stat status;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return -1;
  access->user = (uint32_t)status.st_uid;
  access->group = (uint32_t)status.st_gid;
  access->mode = (uint32_t)status.st_mode;
  return 0;
}

// What distinguishes an entry from others.
struct larkspur_identity {
  uint64_t device;
  uint64_t number;
  uint32_t type;  // S_IFMT of `st_mode`
  int64_t born;   // nanoseconds since 1970, or 0 if the file system does not store the time of creation
};

// Reads the identity of an entry. Returns 0, or -1 with errno.
static inline int larkspur_identity_in_folder(int folder, const char *name, struct larkspur_identity *identity) {
  struct stat status;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return -1;
  identity->device = (uint64_t)status.st_dev;
  identity->number = (uint64_t)status.st_ino;
  identity->type = (uint32_t)(status.st_mode & S_IFMT);
  identity->born = 0;
#if defined(SYS_statx) && defined(STATX_BTIME)
  struct statx more;
  if (syscall(SYS_statx, folder, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &more) == 0 && more.stx_mask & STATX_BTIME)
    identity->born = (int64_t)((uint64_t)more.stx_btime.tv_sec * 1000000000u + more.stx_btime.tv_nsec);
#endif
  return 0;
}

// Renames an entry that is not a directory. Fails with EEXIST if the new name is in use.
static inline int larkspur_move_new(int folder, const char *name, int target, const char *new_name) {
  const unsigned no_replace = 1;  // RENAME_NOREPLACE, which glibc declares only under _GNU_SOURCE
  if (syscall(SYS_renameat2, folder, name, target, new_name, no_replace) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  // Some file systems have no such renaming.
  if (linkat(folder, name, target, new_name, 0) != 0) return -1;
  return unlinkat(folder, name, 0);
}

// Exchanges two entries of one file system. Fails with EINVAL or ENOSYS if it cannot be done there.
static inline int larkspur_exchange(int folder, const char *name, int target, const char *other_name) {
  const unsigned exchange = 2;  // RENAME_EXCHANGE, which glibc declares only under _GNU_SOURCE
  return (int)syscall(SYS_renameat2, folder, name, target, other_name, exchange);
}

// Sets the time of modification, in seconds since 1970.
static inline int larkspur_set_modification_time(int descriptor, double seconds) {
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, larkspur_timespec(seconds)};
  return futimens(descriptor, times);
}

// Reads the process and the user that connected a Unix socket, or that listen at its other end. Returns 0, or -1 with
// errno. glibc declares `struct ucred` only under _GNU_SOURCE.
static inline int larkspur_peer(int descriptor, int32_t *process, uint32_t *user) {
  struct {
    int32_t process;
    uint32_t user;
    uint32_t group;
  } peer;
  socklen_t length = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return -1;
  *process = peer.process;
  *user = peer.user;
  return 0;
}

static inline uint32_t larkspur_effective_user(void) { return (uint32_t)geteuid(); }

// Sends what the socket takes at once.
static inline ssize_t larkspur_send_now(int descriptor, const void *bytes, size_t count) {
  return send(descriptor, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
}

extern char **environ;

// The variables of the environment, each `name=value`, and then NULL.
static inline char *const *larkspur_environment(void) { return environ; }

// The value of a variable, or NULL. A program that runs with other rights than its caller (setuid, file capabilities)
// has no variables: its caller has chosen them.
const char *larkspur_environment_value(const char *name);

// Whether the program runs with other rights than its caller.
int larkspur_is_privileged(void);

// Starts a program in a session of its own (setsid), with / as its directory, its standard streams on /dev/null and no
// other descriptors. The program is no child of the caller, which gets neither a signal nor a zombie.
//
// `life` may be NULL. Otherwise the program keeps one more descriptor, the writing end of a pipe, and `life` becomes the
// reading end, which is at its end when the program, and all that it has started with this descriptor, are gone.
//
// Returns 0 once the program runs, or an error number.
int larkspur_start_detached(const char *path, char *const *arguments, char *const *environment, int *life);

// Raises the number of descriptors that the process may have to `count`, or to the most that the system grants.
static inline int larkspur_raise_descriptor_limit(uint64_t count) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  rlim_t wanted = limit.rlim_max < count ? limit.rlim_max : (rlim_t)count;
  if (wanted <= limit.rlim_cur) return 0;
  limit.rlim_cur = wanted;
  return setrlimit(RLIMIT_NOFILE, &limit);
}

static inline int larkspur_duplicate(int descriptor) { return fcntl(descriptor, F_DUPFD_CLOEXEC, 0); }

#endif
