#define _GNU_SOURCE
#include "CNamespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <unistd.h>

// A pool thread inherits the mount namespace of the thread that started it, and that namespace may be one that an
// earlier test has left. So this first enters the process's namespace, which is the main thread's.
static int enter_view_of_process(void) {
  int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  if (mounts < 0) return errno;
  int error = setns(mounts, CLONE_NEWNS) == 0 ? 0 : errno;
  close(mounts);
  return error;
}

int larkspur_enter_new_namespaces(void) {
  if (unshare(CLONE_FS) != 0) return errno;
  int error = enter_view_of_process();
  if (error != 0) return error;
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) return errno;
  // Keeps the mounts of this namespace from spreading to others.
  return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 ? 0 : errno;
}

int larkspur_enter_namespaces(int network, int mounts) {
  // The kernel refuses to change the mount namespace of a thread that shares its working directory with other threads.
  if (unshare(CLONE_FS) != 0) return errno;
  if (setns(network, CLONE_NEWNET) != 0) return errno;
  return setns(mounts, CLONE_NEWNS) == 0 ? 0 : errno;
}

int larkspur_mount_file(const char *file, const char *place) {
  return mount(file, place, NULL, MS_BIND, NULL) == 0 ? 0 : errno;
}

int larkspur_mount_memory(const char *place, const char *size, int again) {
  return mount("none", place, "tmpfs", again ? MS_REMOUNT : 0, size) == 0 ? 0 : errno;
}
