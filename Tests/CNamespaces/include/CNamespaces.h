// Kernel namespaces for the calling thread, and for the threads and processes that this thread starts. Each function
// returns 0 or an error number.

#pragma once

// Enters a new network namespace, which has only a loopback interface that is down, and a new mount namespace.
int larkspur_enter_new_namespaces(void);
// Enters the namespaces of two descriptors (of /proc/thread-self/ns/net and mnt).
int larkspur_enter_namespaces(int network, int mounts);
// Bind-mounts `file` over `place` in the thread's mount namespace.
int larkspur_mount_file(const char *file, const char *place);
// Mounts a disk in memory with a size option over a directory, or changes the size of the one there.
int larkspur_mount_memory(const char *place, const char *size, int again);
