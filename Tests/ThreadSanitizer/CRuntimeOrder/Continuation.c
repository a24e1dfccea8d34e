// Tells ThreadSanitizer that a task which continues without suspending is ordered after the code that woke it.
//
// The Swift runtime reports to ThreadSanitizer that waking a task is a release of the task, and that a thread which
// resumes a suspended task acquires it. When the wake comes before the task has suspended, the task never suspends, and
// the runtime reports no acquire: everything before the wake then looks like a race with what the task does next.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)

#include "LibraryFunction.h"

#include <stdint.h>

#define ASYNC __attribute__((swiftasynccall))
#define CONTEXT __attribute__((swift_async_context)) struct continuation *continuation

// The beginning of the runtime's ContinuationAsyncContext.
struct continuation {
  struct continuation *parent;
  // Where the task continues if it has not suspended. The address for a suspended task is stored when its wait begins.
  ASYNC void (*resume)(CONTEXT);
  uintptr_t flags;
};

// The task continues by way of an executor, perhaps later and on another thread.
#define HAS_EXECUTOR 2

SWIFT void *swift_task_getCurrent(void);

#define AWAIT "swift_continuation_await"
ASYNC void larkspur_await(struct continuation *continuation) __asm__(AWAIT);
static ASYNC void (*library_await)(struct continuation *continuation);

__attribute__((constructor)) static void find_library_function(void) { library_await = library_function(AWAIT); }

static _Thread_local ASYNC void (*resume)(CONTEXT);

static void acquire(void) { __tsan_acquire(swift_task_getCurrent()); }

// Runs next, on the same thread, and then continues the task.
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
