// Counts the heap allocations of the calling thread.
#ifndef LARKSPUR_MALLOC_COUNT_H
#define LARKSPUR_MALLOC_COUNT_H

#include <stdint.h>

// How often this thread has asked the heap for memory since it began.
uint64_t larkspur_allocations(void);

#endif
