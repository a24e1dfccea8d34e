// Looks up the libraries' functions that this program's functions of the same names replace. Include this file first,
// because it needs _GNU_SOURCE for RTLD_NEXT.
#pragma once

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#define SWIFT __attribute__((swiftcall))

void __tsan_acquire(void *address);
void __tsan_release(void *address);

static inline void *library_function(const char *name) {
  void *function = dlsym(RTLD_NEXT, name);
  // This Swift version's libraries lack the function that this code wraps.
  if (!function) abort();
  return function;
}
