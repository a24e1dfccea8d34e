// Stands in front of the C library's allocator: a definition in the program wins over the library's for everyone in
// the process. All memory still comes from the library, so that what it gave may be given back by any other way.
#include "malloc_count.h"

#include <stddef.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

// One per thread: the servers that a test talks to allocate in the same process.
static __thread uint64_t allocations;

uint64_t larkspur_allocations(void) { return allocations; }

void *malloc(size_t size) {
  allocations++;
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  allocations++;
  return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
  allocations++;
  return __libc_realloc(memory, size);
}
