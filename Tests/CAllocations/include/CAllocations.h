// Counts heap allocations per thread, so that a test can require that there are none while other tests run in parallel.
#ifndef LARKSPUR_ALLOCATIONS_H
#define LARKSPUR_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

// Returns how many heap allocations the calling thread has made since it started.
uint64_t larkspur_allocations(void);

// Returns whether allocations are counted: false under a sanitizer, which has its own malloc.
bool larkspur_allocations_are_counted(void);

#endif
