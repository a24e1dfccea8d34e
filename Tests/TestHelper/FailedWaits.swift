// Waits of a process that may not wait for any descriptor (poll(2): EINVAL, if there are more of them than RLIMIT_NOFILE).
// Each of them ends. One that does not costs the process its time, and the kernel kills it.
//
//   TestHelper failed-waits

import Glibc
import LarkspurBytes
import LarkspurIO

private func limit(_ kind: __rlimit_resource, to value: rlim_t) throws {
  var limit = rlimit(rlim_cur: value, rlim_max: value)
  guard setrlimit(__rlimit_resource_t(kind.rawValue), &limit) == 0 else { throw Failure("no limit") }
}

func runFailedWaits(_ arguments: [String]) throws {
  let listener = try BlockingListener(address: .loopback(port: 0))
  let socket = try BlockingSocket.connect(to: .loopback(port: listener.port))
  let end = LinuxKernel.shared.now().advanced(by: .seconds(3600))
  try limit(RLIMIT_CPU, to: 5)
  try limit(RLIMIT_NOFILE, to: 0)
  if socket.waitForPeerEnd() || socket.waitForPeerEnd(until: end) { throw Failure("the peer has ended") }
  guard (try? socket.receive(atMost: 1, until: end)) == nil else { throw Failure("there are bytes") }
}
