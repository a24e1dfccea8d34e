#ifdef __linux__
// Sockets, the poller, timers and pipes.
#define _GNU_SOURCE
#include "CLarkspurLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

int larkspur_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

int larkspur_epoll_add(int poller, int descriptor, uint32_t events, uint32_t slot, uint32_t registration) {
  struct epoll_event event = {.events = events, .data.u64 = ((uint64_t)registration << 32) | slot};
  return epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event);
}

int larkspur_epoll_wait(int poller, struct larkspur_event *out, int capacity, int timeout_milliseconds) {
  struct epoll_event events[LARKSPUR_EVENTS_MAX];
  if (capacity > LARKSPUR_EVENTS_MAX) capacity = LARKSPUR_EVENTS_MAX;
  int count = (int)syscall(SYS_epoll_pwait, poller, events, capacity, timeout_milliseconds, NULL, 0);
  for (int i = 0; i < count; i++) {
    out[i].events = events[i].events;
    out[i].slot = (uint32_t)events[i].data.u64;
    out[i].registration = (uint32_t)(events[i].data.u64 >> 32);
  }
  return count;
}

int larkspur_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int larkspur_timerfd(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); }

int larkspur_timerfd_set(int descriptor, uint64_t nanoseconds) {
  if (nanoseconds == 0) nanoseconds = 1;
  struct itimerspec time = {
      .it_value = {.tv_sec = (time_t)(nanoseconds / 1000000000), .tv_nsec = (long)(nanoseconds % 1000000000)}};
  return timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &time, NULL);
}

int larkspur_socket(int family, int type) { return socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// The numbers of linux/in.h and linux/mptcp.h, which older systems lack.
enum { LARKSPUR_IPPROTO_MPTCP = 262, LARKSPUR_SOL_MPTCP = 284, LARKSPUR_MPTCP_INFO = 1 };

int larkspur_multipath_socket(int family) {
  return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, LARKSPUR_IPPROTO_MPTCP);
}

int larkspur_is_multipath(int descriptor) {
  char information[256];
  socklen_t length = sizeof(information);
  return getsockopt(descriptor, LARKSPUR_SOL_MPTCP, LARKSPUR_MPTCP_INFO, information, &length) == 0;
}

ssize_t larkspur_send(int descriptor, const void *bytes, size_t count) {
  return syscall(SYS_sendto, descriptor, bytes, count, MSG_NOSIGNAL, NULL, 0);
}

ssize_t larkspur_receive(int descriptor, void *buffer, size_t capacity) {
  return syscall(SYS_recvfrom, descriptor, buffer, capacity, 0, NULL, NULL);
}

ssize_t larkspur_send_gathered(int descriptor, struct iovec *list, size_t count) {
  struct msghdr message = {.msg_iov = list, .msg_iovlen = count};
  return sendmsg(descriptor, &message, MSG_NOSIGNAL);
}

ssize_t larkspur_sendfile(int descriptor, int file, int64_t offset, size_t count) {
  sigset_t pipe, before, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  int was_pending = sigismember(&pending, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  off_t position = (off_t)offset;
  ssize_t sent = sendfile(descriptor, file, &position, count);
  int error = errno;
  if ((sent < 0 ? error == EPIPE : (size_t)sent < count) && !was_pending) {
    struct timespec none = {0, 0};
    while (sigtimedwait(&pipe, NULL, &none) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = error;
  return sent;
}

ssize_t larkspur_splice(int source, int target, size_t count) {
  return splice(source, NULL, target, NULL, count, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

int larkspur_pipe(int *reading, int *writing) {
  int pair[2];
  if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
  fcntl(pair[1], F_SETPIPE_SZ, 1 << 20);
  *reading = pair[0];
  *writing = pair[1];
  return 0;
}

int larkspur_blocking_socket(int family) { return socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0); }

int larkspur_blocking_accept(int listener) { return accept4(listener, NULL, NULL, SOCK_CLOEXEC); }

int larkspur_set_send_timeout(int descriptor, int milliseconds) {
  struct timeval time = {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000};
  return setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

int larkspur_wait_for_event(int descriptor, short event, int timeout_milliseconds) {
  struct pollfd wanted = {.fd = descriptor, .events = event};
  return poll(&wanted, 1, timeout_milliseconds);
}

int larkspur_set_integer_option(int descriptor, int level, int name, int value) {
  return setsockopt(descriptor, level, name, &value, sizeof value);
}

int larkspur_bind_to_interface(int descriptor, const char *name) {
  return setsockopt(descriptor, SOL_SOCKET, SO_BINDTODEVICE, name, (socklen_t)strlen(name) + 1);
}

int larkspur_defer_port(int descriptor) {
  int on = 1;
  return setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
}

int larkspur_pending_error(int descriptor) {
  int value = 0;
  socklen_t length = sizeof value;
  if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &value, &length) != 0) return errno;
  return value;
}

int larkspur_linger_zero(int descriptor) {
  struct linger off = {.l_onoff = 1, .l_linger = 0};
  return setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &off, sizeof off);
}

int larkspur_open_netlink(uint32_t groups, int is_blocking) {
  int type = SOCK_RAW | SOCK_CLOEXEC | (is_blocking ? 0 : SOCK_NONBLOCK);
  int descriptor = socket(AF_NETLINK, type, NETLINK_ROUTE);
  if (descriptor < 0) return -1;
  struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
  // The kernel answers at once. If it ever does not, the caller must not block for ever.
  struct timeval patience = {.tv_sec = 2};
  if (bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0 ||
      setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
    return larkspur_close_failed(descriptor, errno);
  }
  return descriptor;
}

ssize_t larkspur_receive_netlink(int descriptor, void *buffer, size_t capacity) {
  struct sockaddr_nl sender;
  struct iovec room = {.iov_base = buffer, .iov_len = capacity};
  struct msghdr message = {.msg_name = &sender, .msg_namelen = sizeof sender, .msg_iov = &room, .msg_iovlen = 1};
  ssize_t length = recvmsg(descriptor, &message, MSG_TRUNC);
  if (length < 0) return length;
  return message.msg_namelen == sizeof sender && sender.nl_pid == 0 ? length : 0;
}

int larkspur_peer(int descriptor, int32_t *process, uint32_t *user) {
  struct {
    int32_t process;
    uint32_t user;
    uint32_t group;
  } peer;
  socklen_t length = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return -1;
  *process = peer.process;
  *user = peer.user;
  return 0;
}
#endif
