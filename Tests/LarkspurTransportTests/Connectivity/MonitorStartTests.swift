import Dispatch
import LarkspurBytes
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import Synchronization
import TestKit
import Testing

@Suite(.ownThread) struct MonitorStartTests {
  /// Callers that ask while another caller's request is starting the monitor get an answer, too.
  @Test func manyAskFirst() {
    let unknown = Mutex(0)
    for _ in 0..<20 {
      let monitor = ConnectivityMonitor()
      DispatchQueue.concurrentPerform(iterations: 8) { _ in
        if monitor.path(to: .loopback(port: 0)) == .unknown { unknown.withLock { $0 += 1 } }
      }
    }
    #expect(unknown.withLock { $0 } == 0)
  }

  /// A call that comes while the monitor's thread ends starts another, and all observers get what that one knows.
  @Test func aCallDuringTheEnd() async throws {
    let hasObservers = Semaphore()
    let mustFail = Mutex(true)
    let kernel = CountingKernel(replaceWait: {
      guard
        mustFail.withLock({ mustFail in
          defer { mustFail = false }
          return mustFail
        })
      else { return nil }
      _ = hasObservers.take()
      return -Errno.invalidArgument.rawValue
    })
    let monitor = ConnectivityMonitor(kernel: kernel)
    let (duringEnd, last) = (OneShot<Bool>(), OneShot<Bool>())
    let observations = [
      monitor.observe { _ in duringEnd.set(monitor.current.network != nil) },
      monitor.observe { if $0.network != nil { last.set(true) } },
    ]
    hasObservers.put()
    try #require(await duringEnd.get() == true)
    #expect(await last.get() == true)
    for observation in observations { observation.cancel() }
  }
}
