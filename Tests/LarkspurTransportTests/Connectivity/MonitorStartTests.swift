import Dispatch
import LarkspurIO
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
}
