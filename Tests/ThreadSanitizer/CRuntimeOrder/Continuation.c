// Tells ThreadSanitizer that a task which goes on at once comes after whoever has woken it.
//
// Who wakes a task releases it, as the runtime says to ThreadSanitizer itself; a thread that takes up a task which has
// suspended acquires it. Of a task that has been woken before it could suspend, and so never does, the runtime does not say
// so: all that its waker has done looks like a race with what the task does next.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)

#include "LibraryFunction.h"

#include <stdint.h>

#define ASYNC __attribute__((swiftasynccall))
#define CONTEXT __attribute__((swift_async_context)) struct continuation *continuation

// The beginning of what the runtime knows as ContinuationAsyncContext.
struct continuation {
  struct continuation *parent;
  // Where the task goes on if it has not suspended. (Where it goes on if it has, it knows from the beginning of its wait.)
  ASYNC void (*resume)(CONTEXT);
  uintptr_t flags;
};

// It goes on by way of an executor, perhaps later and on another thread.
#define HAS_EXECUTOR 2

SWIFT void *swift_task_getCurrent(void);

#define AWAIT "swift_continuation_await"
ASYNC void larkspur_await(struct continuation *continuation) __asm__(AWAIT);
static ASYNC void (*library_await)(struct continuation *continuation);

__attribute__((constructor)) static void find_library_function(void) { library_await = library_function(AWAIT); }

static _Thread_local ASYNC void (*resume)(CONTEXT);

static void acquire(void) { __tsan_acquire(swift_task_getCurrent()); }

// On the same thread, and next.
static ASYNC void go_on(CONTEXT) {
  acquire();
  __attribute__((musttail)) return resume(continuation);
}

ASYNC void larkspur_await(struct continuation *continuation) {
  if (continuation->flags & HAS_EXECUTOR) {
    acquire();
  } else {
    resume = continuation->resume;
    continuation->resume = go_on;
  }
  __attribute__((musttail)) return library_await(continuation);
}

#endif
#endif
