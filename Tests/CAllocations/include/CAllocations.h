// Counts heap allocations per thread, so that a test can say "none" while other tests run beside it.
#ifndef LARKSPUR_ALLOCATIONS_H
#define LARKSPUR_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

// How often the calling thread has asked for heap memory since it started.
uint64_t larkspur_allocations(void);

// False where a sanitizer owns malloc: nothing is counted there.
bool larkspur_allocations_are_counted(void);

#endif
