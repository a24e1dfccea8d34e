#define _GNU_SOURCE
#include "CLarkspurLinux.h"

#include <sched.h>
#include <sys/time.h>

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

int larkspur_processor_count(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}
