// The kernel's namespaces, for the calling thread. Threads and processes that it starts are where it is. Each function
// returns 0 or an error number.

#pragma once

// Goes to a network and a view of the file system of its own: no interface but a loopback that is down.
int larkspur_enter_new_namespaces(void);
// Goes where the descriptors (of /proc/thread-self/ns/net and mnt) lead to.
int larkspur_enter_namespaces(int network, int mounts);
// Lets `file` stand in the place of `place`, in the thread's own view of the file system.
int larkspur_mount_file(const char *file, const char *place);
