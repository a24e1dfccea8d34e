#include "CAllocations.h"

#include <errno.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED

uint64_t larkspur_allocations(void) { return 0; }
bool larkspur_allocations_are_counted(void) { return false; }

#else

static __thread uint64_t allocations;

uint64_t larkspur_allocations(void) { return allocations; }
bool larkspur_allocations_are_counted(void) { return true; }

// A `malloc` that the program defines replaces the C library's in every library that the program loads, the Swift
// runtime included. `free` needs no substitute, because all memory still comes from the C library.
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) {
  allocations += 1;
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  allocations += 1;
  return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
  allocations += 1;
  return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
  allocations += 1;
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  allocations += 1;
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
  if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  allocations += 1;
  void *memory = __libc_memalign(alignment, size);
  if (memory == NULL) return ENOMEM;
  *result = memory;
  return 0;
}

#endif
