// System calls in a form that Swift can declare: without variadic functions, macros, unions and bit fields.
#if defined(__linux__) && !defined(LARKSPUR_LINUX_H)
#define LARKSPUR_LINUX_H

#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

// An event of the poller, with the meaning that Larkspur gives to epoll_event's union: a slot and its registration.
struct larkspur_event {
  uint32_t events;
  uint32_t slot;
  uint32_t registration;
};

int larkspur_epoll_create(void);
int larkspur_epoll_add(int poller, int descriptor, uint32_t events, uint32_t slot, uint32_t registration);

enum { LARKSPUR_EVENTS_MAX = 128 };

// Waits, and then unpacks the kernel's packed events for Swift.
//
// Performance: in the C library, epoll_wait, send and recv are cancellation points, which cost two atomic operations
// for each call. A thread that runs Swift code must not be cancelled, so these three calls, which each request makes,
// use `syscall` (decision 22).
int larkspur_epoll_wait(int poller, struct larkspur_event *out, int capacity, int timeout_milliseconds);
int larkspur_eventfd(void);
int larkspur_timerfd(void);

// Sets the timer to a moment of the monotonic clock. A value of 0 would stop it.
int larkspur_timerfd_set(int descriptor, uint64_t nanoseconds);
int larkspur_socket(int family, int type);

// Multipath TCP (RFC 8684). The first call fails where the kernel has none.
int larkspur_multipath_socket(int family);
// Whether a connected socket uses multipath TCP: the kernel refuses the option after a fallback to TCP.
int larkspur_is_multipath(int descriptor);
ssize_t larkspur_send(int descriptor, const void *bytes, size_t count);
ssize_t larkspur_receive(int descriptor, void *buffer, size_t capacity);
ssize_t larkspur_send_gathered(int descriptor, struct iovec *list, size_t count);

// The number of processors that the process may run on, at least 1.
int larkspur_processor_count(void);

// sendfile raises SIGPIPE like a write, and has no flag to prevent it. The signal is blocked during the call, and taken
// back if it was raised. SIGPIPE is also raised when the connection breaks after a part of the bytes.
ssize_t larkspur_sendfile(int descriptor, int file, int64_t offset, size_t count);
ssize_t larkspur_splice(int source, int target, size_t count);

// Requests 1 MiB for the pipe, the default maximum for an unprivileged user. A smaller pipe works, too.
int larkspur_pipe(int *reading, int *writing);
int larkspur_blocking_socket(int family);
int larkspur_blocking_accept(int listener);

// Sets the time that each `connect` and `send` of a blocking socket may take (SO_SNDTIMEO). 0 stands for no limit.
int larkspur_set_send_timeout(int descriptor, int milliseconds);

// Waits for an event. Returns 1, or 0 after the timeout, or -1 with errno. A negative timeout waits without limit.
int larkspur_wait_for_event(int descriptor, short event, int timeout_milliseconds);

// Returns a descriptor that reports the removal of names from a directory and of the directory itself, or -1 with
// errno.
int larkspur_watch_removals(const char *folder);

// Blocks until an event arrives that may concern the name. Returns 0, or -1 with errno.
int larkspur_wait_for_removal(int watch, const char *name);

// Returns a descriptor that notes changes in directories and never blocks, or -1 with errno.
int larkspur_open_change_watch(void);

// Watches a directory for entries that are written, created, moved or removed. Returns 0, or -1 with errno.
int larkspur_watch_changes(int watch, const char *folder);

// Waits for the semaphore until a moment on the monotonic clock. Returns 0 if it was decremented, or -1 with errno.
int larkspur_semaphore_wait(sem_t *semaphore, uint64_t deadline_nanoseconds);
uint64_t larkspur_monotonic_nanoseconds(void);

// The time since the machine's start, with the time for which it slept.
double larkspur_seconds_since_boot(void);
double larkspur_wall_seconds(void);

void larkspur_make_adaptive_mutex(pthread_mutex_t *mutex);

int larkspur_set_integer_option(int descriptor, int level, int name, int value);

// Binds the socket to an interface. The caller must check the name: an empty name would remove the binding, and a name
// of more than IFNAMSIZ - 1 bytes would be truncated.
int larkspur_bind_to_interface(int descriptor, const char *name);

// Makes `connect` choose the port if `bind` leaves it open. Connections to different destinations may share the port.
int larkspur_defer_port(int descriptor);
int larkspur_pending_error(int descriptor);

// Makes close send RST in place of FIN, by a linger time of zero. A test server resets a connection with it.
int larkspur_linger_zero(int descriptor);

// Catches SIGINT, SIGTERM and SIGHUP, once each: notes the signal, and makes the wake-up descriptor (an eventfd)
// readable.
void larkspur_catch_ending_signals(int wake_up_descriptor);

// Makes blocking calls fail with EINTR after `from_nanoseconds` and then every 50 ms, so that their callers can check
// the time. Call `larkspur_catch_ending_signals` first.
void larkspur_interrupt_calls(uint64_t from_nanoseconds);

// The signal that was caught last, or 0.
int larkspur_caught_signal(void);

int larkspur_open_regular_for_reading(const char *path);

// Opens a regular file to change it. Fails with EPERM if the file has another name: it may be another program's.
int larkspur_open_regular_for_updating(const char *path);

// Creates a file without a name in a directory, for writing. Fails where the file system has no such files, or where
// `larkspur_link_file` could not give the file a name later. The process's umask applies to the permissions.
int larkspur_create_nameless_file(const char *folder);

// Gives a nameless file its name. Fails with EEXIST if the name is in use. The form of linkat(2) that needs no privilege.
int larkspur_link_file(int file, int folder, const char *name);

// Opens a directory of the current user for private use, and creates it if `create` is set. Removes the access of other
// users. Refuses a symbolic link and a directory of another user: if another user created the directory first, for
// example under /tmp, that user could read the files in it.
int larkspur_open_private_folder(const char *path, int create);

// Whether the name in the directory leads to this open file.
int larkspur_is_named_in_folder(int folder, const char *name, int file);

// The size in bytes, and the times of access and modification in seconds since 1970.
struct larkspur_file_facts {
  int64_t size;
  double used;
  double changed;
};

// Returns -1 if the file is not a regular file, or does not exist.
int larkspur_facts_in_folder(int folder, const char *name, struct larkspur_file_facts *out);

// Returns the next name, or NULL at the end.
const char *larkspur_next_name(DIR *list);
DIR *larkspur_list_folder(int folder);
int larkspur_set_times_in_folder(int folder, const char *name, double used, double changed);

// The `st_mode` of a path (symbolic links followed) or of a descriptor, or -1 with errno.
long larkspur_mode_of_path(const char *path);

// Whether the file or directory belongs to root or to the effective user, and not every user may write to it.
int larkspur_is_guarded(const char *path);
long larkspur_mode_of_descriptor(int descriptor);

// The facts that recognize a file's content without reading it.
struct larkspur_file_status {
  int64_t size;
  int64_t modification_seconds;
  uint32_t modification_nanoseconds;
  uint64_t inode;
  int64_t allocated;  // the room on the disk in bytes
};

// Returns 0, or -1 with errno.
int larkspur_status_of_descriptor(int descriptor, struct larkspur_file_status *result);

// The width of the terminal, or 0 if it is unknown or the descriptor is not a terminal.
int larkspur_terminal_columns(int descriptor);

// Closes a descriptor that must not be used because of `error`. Returns -1 with that error.
int larkspur_close_failed(int descriptor, int error);

// Opens a socket to the kernel's network configuration. It receives the changes in `groups`; 0 means no changes.
int larkspur_open_netlink(uint32_t groups, int is_blocking);

// Receives one datagram. Returns its length, which is more than `capacity` if it was truncated, or 0 if the kernel did
// not send it.
ssize_t larkspur_receive_netlink(int descriptor, void *buffer, size_t capacity);

// Opens a regular file with the flags, and creates it with the mode if they say so. Fails with EPERM for any other kind of
// file, and, if `is_own` is not 0, for a file of another user or with another number of names than one.
int larkspur_open_in_folder(int folder, const char *name, int flags, uint32_t mode, int is_own);
int larkspur_cut_file(int descriptor, int64_t size);

// The owner, the group, the `st_mode`, the size in bytes and the inode of an entry.
struct larkspur_access {
  uint32_t user;
  uint32_t group;
  uint32_t mode;
  int64_t size;
  uint64_t inode;
};

// Returns 0, or -1 with errno. The name "." stands for the directory.
int larkspur_access_in_folder(int folder, const char *name, struct larkspur_access *access);

// What distinguishes an entry from others.
struct larkspur_identity {
  uint64_t device;
  uint64_t number;
  uint32_t type;  // S_IFMT of `st_mode`
  int64_t born;   // nanoseconds since 1970, or 0 if the file system does not store the time of creation
};

// Reads the identity of an entry. Returns 0, or -1 with errno.
int larkspur_identity_in_folder(int folder, const char *name, struct larkspur_identity *identity);

// Renames an entry that is not a directory. Fails with EEXIST if the new name is in use.
int larkspur_move_new(int folder, const char *name, int target, const char *new_name);

// Exchanges two entries of one file system. Fails with EINVAL or ENOSYS if it cannot be done there.
int larkspur_exchange(int folder, const char *name, int target, const char *other_name);

// Sets the time of modification, in seconds since 1970.
int larkspur_set_modification_time(int descriptor, double seconds);

// Reads the process and the user that connected a Unix socket, or that listen at its other end. Returns 0, or -1 with
// errno.
int larkspur_peer(int descriptor, int32_t *process, uint32_t *user);

// The variables of the environment, each `name=value`, and then NULL.
char *const *larkspur_environment(void);

// The value of a variable, or NULL. A program that runs with other rights than its caller (setuid, file capabilities)
// has no variables: its caller has chosen them.
const char *larkspur_environment_value(const char *name);

// Whether the program runs with other rights than its caller.
int larkspur_is_privileged(void);

// Starts a program in a new session (setsid), with / as its directory, its standard streams on /dev/null and no other
// descriptors. The program is no child of the caller, which gets neither a signal nor a zombie.
//
// `life` may be NULL. Otherwise the program keeps one more descriptor, the writing end of a pipe, and `life` becomes the
// reading end, which is at its end when the program, and all that it has started with this descriptor, are gone.
//
// Returns 0 once the program runs, or an error number.
int larkspur_start_detached(const char *path, char *const *arguments, char *const *environment, int *life);

// Raises the number of descriptors that the process may have to `count`, or to the most that the system grants.
int larkspur_raise_descriptor_limit(uint64_t count);
int larkspur_duplicate(int descriptor);

#endif
