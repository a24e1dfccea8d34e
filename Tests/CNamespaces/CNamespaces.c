#define _GNU_SOURCE
#include "CNamespaces.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>

int larkspur_enter_new_namespaces(void) {
  if (unshare(CLONE_FS | CLONE_NEWNET | CLONE_NEWNS) != 0) return errno;
  // What is mounted here is not to be seen elsewhere.
  return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 ? 0 : errno;
}

int larkspur_enter_namespaces(int network, int mounts) {
  // A thread that shares its working directory with others may not change its view.
  if (unshare(CLONE_FS) != 0) return errno;
  if (setns(network, CLONE_NEWNET) != 0) return errno;
  return setns(mounts, CLONE_NEWNS) == 0 ? 0 : errno;
}

int larkspur_mount_file(const char *file, const char *place) {
  return mount(file, place, NULL, MS_BIND, NULL) == 0 ? 0 : errno;
}
