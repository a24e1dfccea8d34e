#ifdef __linux__
#define _GNU_SOURCE
#include "CLarkspurLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// A signal handler can reach static storage only, and may only store flags and make system calls.
static volatile sig_atomic_t caught_signal = 0;
static volatile sig_atomic_t wake_up_descriptor = -1;

static void do_nothing(int number) { (void)number; }

void larkspur_interrupt_calls(uint64_t from_nanoseconds) {
  // Repeat every 50 ms, because the first signal may arrive just before the blocking call. A value of 0 would switch
  // the timer off.
  struct itimerval timer = {.it_interval.tv_usec = 50000, .it_value.tv_usec = 1};
  if (from_nanoseconds > 1000) {
    timer.it_value.tv_sec = (time_t)(from_nanoseconds / 1000000000u);
    timer.it_value.tv_usec = (suseconds_t)(from_nanoseconds % 1000000000u / 1000u);
  }
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void note_signal(int number) {
  int saved = errno;
  uint64_t one = 1;
  caught_signal = number;
  ssize_t ignored = write(wake_up_descriptor, &one, sizeof one);
  (void)ignored;
  // A thread that is about to block has not seen the flag yet. Interrupt its call.
  larkspur_interrupt_calls(0);
  errno = saved;
}

void larkspur_catch_ending_signals(int descriptor) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  wake_up_descriptor = descriptor;
  struct sigaction interrupting = {.sa_handler = do_nothing};
  sigemptyset(&interrupting.sa_mask);
  sigaction(SIGALRM, &interrupting, NULL);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    struct sigaction old;
    // A signal that the parent process has set to be ignored (nohup, a shell's background job) stays ignored.
    if (sigaction(numbers[i], NULL, &old) != 0 || old.sa_handler == SIG_IGN) continue;
    // Without SA_RESTART a blocked write returns, and its caller can check the flag. With SA_RESETHAND a second signal
    // ends the process at once.
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(numbers[i], &action, NULL);
  }
}

int larkspur_caught_signal(void) { return caught_signal; }

int larkspur_watch_removals(const char *folder) {
  int watch = inotify_init1(IN_CLOEXEC);
  if (watch < 0) return -1;
  uint32_t events = IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW;
  if (inotify_add_watch(watch, folder, events) >= 0) return watch;
  return larkspur_close_failed(watch, errno);
}

int larkspur_wait_for_removal(int watch, const char *name) {
  _Alignas(struct inotify_event) char buffer[4096];
  while (1) {
    ssize_t count = read(watch, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return -1;
    for (ssize_t offset = 0; offset < count;) {
      const struct inotify_event *event = (const struct inotify_event *)(buffer + offset);
      // Events without a name concern the directory itself, or say that events were lost.
      if (event->len == 0 || strcmp(event->name, name) == 0) return 0;
      offset += (ssize_t)(sizeof *event + event->len);
    }
  }
}

int larkspur_open_change_watch(void) { return inotify_init1(IN_CLOEXEC | IN_NONBLOCK); }

int larkspur_watch_changes(int watch, const char *folder) {
  uint32_t events = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  return inotify_add_watch(watch, folder, events) >= 0 ? 0 : -1;
}

const char *larkspur_environment_value(const char *name) { return secure_getenv(name); }

int larkspur_is_privileged(void) { return getauxval(AT_SECURE) != 0; }

int larkspur_processor_count(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

// Makes all descriptors from 3 on close when a program is executed.
static void close_all_on_execution(void) {
  // close_range (Linux 5.11 for its flag), by its number and CLOSE_RANGE_CLOEXEC: older C libraries lack both.
  if (syscall(436, 3u, ~0u, 4u) == 0) return;
  struct rlimit limit;
  rlim_t end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536 ? limit.rlim_cur : 65536;
  for (int descriptor = 3; (rlim_t)descriptor < end; descriptor++) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

// Becomes the program. Runs in a process with a copy of the caller's memory and one thread, in which only system calls
// are safe. An error is written to `report`, which closes when the program begins. The program keeps `life`, unless that
// is negative.
static void become(const char *path, char *const *arguments, char *const *environment, int report, int life) {
  sigset_t none;
  struct sigaction usual = {.sa_handler = SIG_DFL};
  sigemptyset(&usual.sa_mask);
  for (int number = 1; number < NSIG; number++) sigaction(number, &usual, NULL);
  sigemptyset(&none);
  int error = 0;
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || chdir("/") != 0) error = errno;
  for (int stream = 0; stream < 3 && error == 0; stream++) {
    // A stream that the caller had closed may be /dev/null already, and dup2 would leave its flag as it is.
    if (null == stream ? fcntl(stream, F_SETFD, 0) != 0 : dup2(null, stream) < 0) error = errno;
  }
  if (error == 0) {
    close_all_on_execution();
    if (life >= 0) fcntl(life, F_SETFD, 0);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(path, arguments, environment);
    error = errno;
  }
  ssize_t ignored = write(report, &error, sizeof error);
  (void)ignored;
  _exit(127);
}

// A pipe that is closed on execution. Its writing end must not be one of the standard streams, which a program that is
// started gets anew. Returns an error number.
static int make_pipe(int ends[2]) {
  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  int writing = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
  int error = writing < 0 ? errno : 0;
  close(ends[1]);
  ends[1] = writing;
  if (error != 0) close(ends[0]);
  return error;
}

int larkspur_start_detached(const char *path, char *const *arguments, char *const *environment, int *life) {
  int ends[2], life_ends[2] = {-1, -1};
  int error = make_pipe(ends);
  if (error != 0) return error;
  if (life && (error = make_pipe(life_ends)) != 0) {
    close(ends[0]);
    close(ends[1]);
    return error;
  }
  sigset_t all, before;
  sigfillset(&all);
  // No handler of the caller runs in the copies.
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Without an exit signal: neither a SIGCHLD handler nor another thread's `wait` sees the first copy, whose only task
  // is to leave the second one without a parent. `clone` in place of `fork`, which would call the handlers of
  // libraries.
  pid_t first = (pid_t)syscall(SYS_clone, 0ul, 0ul, 0ul, 0ul, 0ul);
  if (first == 0) {
    setsid();
    pid_t second = (pid_t)syscall(SYS_clone, (unsigned long)SIGCHLD, 0ul, 0ul, 0ul, 0ul);
    if (second == 0) become(path, arguments, environment, ends[1], life_ends[1]);
    int failure = second < 0 ? errno : 0;
    if (failure != 0) {
      ssize_t ignored = write(ends[1], &failure, sizeof failure);
      (void)ignored;
    }
    _exit(0);
  }
  if (first < 0) error = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  close(ends[1]);
  if (life) close(life_ends[1]);
  if (first > 0) {
    while (waitpid(first, NULL, __WALL) < 0 && errno == EINTR) {
    }
    // The end of the pipe: the program runs.
    int failure = 0;
    ssize_t count;
    while ((count = read(ends[0], &failure, sizeof failure)) < 0 && errno == EINTR) {
    }
    if (count == (ssize_t)sizeof failure) error = failure;
  }
  close(ends[0]);
  if (life && error == 0) *life = life_ends[0];
  else if (life) close(life_ends[0]);
  return error;
}

uint64_t larkspur_monotonic_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// The moment so many nanoseconds after another moment.
static struct timespec later(struct timespec moment, uint64_t nanoseconds) {
  uint64_t sum = (uint64_t)moment.tv_nsec + nanoseconds;
  return (struct timespec){.tv_sec = moment.tv_sec + (time_t)(sum / 1000000000u), .tv_nsec = (long)(sum % 1000000000u)};
}

int larkspur_semaphore_wait(sem_t *semaphore, uint64_t deadline_nanoseconds) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 30)
  struct timespec deadline = later((struct timespec){0}, deadline_nanoseconds);
  return sem_clockwait(semaphore, CLOCK_MONOTONIC, &deadline);
#else
  // The clock for `sem_timedwait` may be set while the call waits. A call that returns early is made again.
  int result;
  do {
    uint64_t now = larkspur_monotonic_nanoseconds();
    struct timespec moment;
    clock_gettime(CLOCK_REALTIME, &moment);
    if (deadline_nanoseconds > now) moment = later(moment, deadline_nanoseconds - now);
    result = sem_timedwait(semaphore, &moment);
  } while (result != 0 && errno == ETIMEDOUT && larkspur_monotonic_nanoseconds() < deadline_nanoseconds);
  return result;
#endif
}

double larkspur_seconds_since_boot(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double larkspur_wall_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void larkspur_make_adaptive_mutex(pthread_mutex_t *mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
#ifdef __GLIBC__
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
  pthread_mutex_init(mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

char *const *larkspur_environment(void) { return environ; }

int larkspur_raise_descriptor_limit(uint64_t count) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  rlim_t wanted = limit.rlim_max < count ? limit.rlim_max : (rlim_t)count;
  if (wanted <= limit.rlim_cur) return 0;
  limit.rlim_cur = wanted;
  return setrlimit(RLIMIT_NOFILE, &limit);
}

int larkspur_duplicate(int descriptor) { return fcntl(descriptor, F_DUPFD_CLOEXEC, 0); }
#endif
