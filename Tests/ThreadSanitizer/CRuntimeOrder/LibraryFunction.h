// The libraries' own functions, which those of this program are called before. To be included first: it asks for RTLD_NEXT.
#pragma once

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#define SWIFT __attribute__((swiftcall))

void __tsan_acquire(void *address);
void __tsan_release(void *address);

static inline void *library_function(const char *name) {
  void *function = dlsym(RTLD_NEXT, name);
  // Swift's libraries are others than those that this follows.
  if (!function) abort();
  return function;
}
