#ifdef __linux__
// Files and directories. Names of entries are no paths, and no function follows a symbolic link of such a name.
#define _GNU_SOURCE
#include "CLarkspurLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// RENAME_NOREPLACE and RENAME_EXCHANGE, which not every C library declares.
enum { rename_new = 1, rename_exchange = 2 };

int larkspur_close_failed(int descriptor, int error) {
  close(descriptor);
  errno = error;
  return -1;
}

// Opens a regular file. Fails with EINVAL for any other kind of file, and, if `names` is not 0, with EPERM for a file with
// another number of names. O_NONBLOCK, because opening a pipe would otherwise wait for a writer.
static int larkspur_open_regular(const char *path, int flags, nlink_t names) {
  int file = open(path, flags | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return -1;
  struct stat facts;
  if (fstat(file, &facts) != 0) return larkspur_close_failed(file, errno);
  if (!S_ISREG(facts.st_mode)) return larkspur_close_failed(file, EINVAL);
  if (names != 0 && facts.st_nlink != names) return larkspur_close_failed(file, EPERM);
  return file;
}

int larkspur_open_regular_for_reading(const char *path) { return larkspur_open_regular(path, O_RDONLY, 0); }

int larkspur_open_regular_for_updating(const char *path) { return larkspur_open_regular(path, O_RDWR | O_NOFOLLOW, 1); }

int larkspur_create_nameless_file(const char *folder) {
  if (access("/proc/self/fd", X_OK) != 0) return -1;
  return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
}

int larkspur_link_file(int file, int folder, const char *name) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  return linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW);
}

int larkspur_open_private_folder(const char *path, int create) {
  if (create && mkdir(path, 0700) != 0 && errno != EEXIST) return -1;
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return -1;
  struct stat facts;
  if (fstat(folder, &facts) != 0) return larkspur_close_failed(folder, errno);
  if (facts.st_uid != geteuid()) return larkspur_close_failed(folder, EPERM);
  if ((facts.st_mode & 077) != 0 && fchmod(folder, 0700) != 0) return larkspur_close_failed(folder, errno);
  return folder;
}

int larkspur_is_named_in_folder(int folder, const char *name, int file) {
  struct stat open, named;
  return fstat(file, &open) == 0 && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

static double larkspur_seconds(struct timespec time) { return (double)time.tv_sec + (double)time.tv_nsec / 1e9; }

int larkspur_facts_in_folder(int folder, const char *name, struct larkspur_file_facts *out) {
  struct stat facts;
  if (fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(facts.st_mode)) return -1;
  out->size = facts.st_size;
  out->used = larkspur_seconds(facts.st_atim);
  out->changed = larkspur_seconds(facts.st_mtim);
  return 0;
}

const char *larkspur_next_name(DIR *list) {
  struct dirent *entry = readdir(list);
  return entry ? entry->d_name : NULL;
}

DIR *larkspur_list_folder(int folder) {
  int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return NULL;
  DIR *list = fdopendir(own);
  if (!list) larkspur_close_failed(own, errno);
  return list;
}

// Converts seconds since 1970. NaN and values out of range leave the file's time as it is.
static struct timespec larkspur_timespec(double seconds) {
  struct timespec time = {.tv_sec = 0, .tv_nsec = UTIME_OMIT};
  if (!(seconds > -1e10 && seconds < 1e10)) return time;
  time.tv_sec = (time_t)seconds;
  if ((double)time.tv_sec > seconds) time.tv_sec -= 1;
  long nanoseconds = (long)((seconds - (double)time.tv_sec) * 1e9);
  time.tv_nsec = nanoseconds < 0 ? 0 : nanoseconds > 999999999 ? 999999999 : nanoseconds;
  return time;
}

int larkspur_set_times_in_folder(int folder, const char *name, double used, double changed) {
  struct timespec times[2] = {larkspur_timespec(used), larkspur_timespec(changed)};
  return utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW);
}

long larkspur_mode_of_path(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 ? (long)status.st_mode : -1;
}

int larkspur_is_guarded(const char *path) {
  struct stat status;
  if (stat(path, &status) != 0) return 0;
  return (status.st_uid == 0 || status.st_uid == geteuid()) && (status.st_mode & S_IWOTH) == 0;
}

long larkspur_mode_of_descriptor(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 ? (long)status.st_mode : -1;
}

int larkspur_status_of_descriptor(int descriptor, struct larkspur_file_status *result) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return -1;
  result->size = status.st_size;
  result->modification_seconds = status.st_mtim.tv_sec;
  result->modification_nanoseconds = (uint32_t)status.st_mtim.tv_nsec;
  result->inode = status.st_ino;
  result->allocated = (int64_t)status.st_blocks * 512;
  return 0;
}

int larkspur_terminal_columns(int descriptor) {
  struct winsize size;
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int larkspur_open_in_folder(int folder, const char *name, int flags, uint32_t mode, int is_own) {
  int file = openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, (mode_t)mode);
  if (file < 0) {
    // What the kernel says of links, directories and sockets.
    if (errno == ELOOP || errno == EISDIR || errno == ENXIO) errno = EPERM;
    return -1;
  }
  struct stat facts;
  if (fstat(file, &facts) != 0) return larkspur_close_failed(file, errno);
  int fits = S_ISREG(facts.st_mode) && (!is_own || (facts.st_uid == geteuid() && facts.st_nlink == 1));
  return fits ? file : larkspur_close_failed(file, EPERM);
}

int larkspur_cut_file(int descriptor, int64_t size) {
  if (ftruncate(descriptor, size) != 0) return -1;
  return lseek(descriptor, size, SEEK_SET) == size ? 0 : -1;
}

int larkspur_access_in_folder(int folder, const char *name, struct larkspur_access *access) {
  struct stat status;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return -1;
  access->user = (uint32_t)status.st_uid;
  access->group = (uint32_t)status.st_gid;
  access->mode = (uint32_t)status.st_mode;
  access->size = status.st_size;
  access->inode = (uint64_t)status.st_ino;
  return 0;
}

int larkspur_identity_in_folder(int folder, const char *name, struct larkspur_identity *identity) {
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

int larkspur_move_new(int folder, const char *name, int target, const char *new_name) {
  if (syscall(SYS_renameat2, folder, name, target, new_name, rename_new) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  // Some file systems have no such renaming.
  if (linkat(folder, name, target, new_name, 0) != 0) return -1;
  return unlinkat(folder, name, 0);
}

int larkspur_exchange(int folder, const char *name, int target, const char *other_name) {
  return (int)syscall(SYS_renameat2, folder, name, target, other_name, rename_exchange);
}

int larkspur_set_modification_time(int descriptor, double seconds) {
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, larkspur_timespec(seconds)};
  return futimens(descriptor, times);
}
#endif
