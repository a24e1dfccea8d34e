// Tells ThreadSanitizer about the ordering that a contended Mutex establishes.
//
// Swift's Mutex locks and unlocks without contention by atomic operations in the caller's own code, which
// ThreadSanitizer sees. With contention, the standard library and the kernel lock and unlock (a futex that hands the
// lock over). Neither is instrumented, so that each access under the lock looks like a race.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)

#include "LibraryFunction.h"

#include <stdbool.h>
#include <stdint.h>

// The lock's only word is the first word of the Mutex.
#define MUTEX __attribute__((swift_context)) void *mutex

// Synchronization._MutexHandle: _lockSlow(UInt32), _tryLockSlow() -> Bool, _unlockSlow().
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFT void larkspur_lock(uint32_t thread, MUTEX) __asm__(LOCK);
SWIFT bool larkspur_try_lock(MUTEX) __asm__(TRY_LOCK);
SWIFT void larkspur_unlock(MUTEX) __asm__(UNLOCK);

static SWIFT void (*library_lock)(uint32_t thread, MUTEX);
static SWIFT bool (*library_try_lock)(MUTEX);
static SWIFT void (*library_unlock)(MUTEX);

__attribute__((constructor)) static void find_library_functions(void) {
  library_lock = library_function(LOCK);
  library_try_lock = library_function(TRY_LOCK);
  library_unlock = library_function(UNLOCK);
}

SWIFT void larkspur_lock(uint32_t thread, MUTEX) {
  library_lock(thread, mutex);
  __tsan_acquire(mutex);
}

SWIFT bool larkspur_try_lock(MUTEX) {
  bool is_locked = library_try_lock(mutex);
  if (is_locked) __tsan_acquire(mutex);
  return is_locked;
}

SWIFT void larkspur_unlock(MUTEX) {
  __tsan_release(mutex);
  library_unlock(mutex);
}

#endif
#endif
