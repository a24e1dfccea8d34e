import Foundation
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport
import Synchronization
import Testing

@testable import Larkspur

/// Tests of reachability that need only the loopback interface.
@Suite(.timeLimit(.minutes(1))) struct NetworkReachabilityTests {
  @Test func targets() throws {
    #expect(ReachabilityTarget(host: "127.0.0.1") == .address(.ipv4(0x7f00_0001, port: 0)))
    #expect(ReachabilityTarget(host: "::1") == .address(.ipv6(high: 0, low: 1, scope: 0, port: 0)))
    #expect(ReachabilityTarget(host: "A.Example") == .name(try HostName("a.example")))
    for host in ["", "a b", "a..b", "fe80::1%no-such-link"] { #expect(ReachabilityTarget(host: host) == .nowhere) }
  }

  @Test func socketAddresses() {
    let own = { (number: UInt16) in withUnsafeBytes(of: number) { Array($0) } }
    let scope = withUnsafeBytes(of: UInt32(7)) { Array($0) }
    let zeros = { (count: Int) in [UInt8](repeating: 0, count: count) }
    let cases: [([UInt8], ReachabilityTarget?)] = [
      (own(2) + [1, 0xbb, 10, 9, 0, 2] + zeros(8), .address(.ipv4(0x0a09_0002, port: 443))),
      (own(2) + zeros(14), .anywhere),
      (
        own(10) + [0, 80, 0, 0, 0, 0, 0xfe, 0x80] + zeros(13) + [1] + scope,
        .address(.ipv6(high: 0xfe80 << 48, low: 1, scope: 7, port: 80))
      ),
      (own(10) + zeros(26), .anywhere),
      // Addresses that are too short, of another family, or empty.
      (own(10) + zeros(14), nil), (own(2) + zeros(10), nil), (own(1) + zeros(108), nil), ([], nil),
    ]
    for (bytes, target) in cases {
      #expect(ReachabilityTarget(socketAddress: Data(bytes)) == target)
      #expect((NetworkReachability(socketAddress: Data(bytes)) == nil) == (target == nil))
    }
  }

  @Test(arguments: ["127.0.0.1", "::1", "localhost", "x.localhost."]) func loopback(_ host: String) async {
    let path = await NetworkReachability(host: host).paths.first { _ in true }
    #expect(path == .reachable(.loopback) && path?.isReachable == true)
  }

  @Test(arguments: ["", "a b", "no.such.invalid"]) func nowhere(_ host: String) async {
    let path = await NetworkReachability(host: host).paths.first { _ in true }
    #expect(path == .unreachable && path?.isReachable == false)
  }

  @Test func ways() {
    #expect(NetworkReachability.Path(.unknown) == .unknown && !NetworkReachability.Path.unknown.isReachable)
    #expect(NetworkReachability.Path(.none) == .unreachable)
    let kinds: [(NetworkLink.Kind, NetworkReachability.LinkKind)] = [
      (.loopback, .loopback), (.wired, .wired), (.wireless, .wireless), (.cellular, .cellular), (.other, .other),
    ]
    for (kind, shown) in kinds { #expect(NetworkReachability.Path(.over(kind)) == .reachable(shown)) }
  }

  @Test func timesBetweenLookUps() {
    var seconds = ReachabilityWatch.retrySecondsMin
    var all: [Int] = []
    for _ in 0..<9 {
      all.append(seconds)
      seconds = ReachabilityWatch.retrySeconds(after: seconds)
    }
    #expect(all == [1, 2, 4, 8, 16, 32, 60, 60, 60])
  }

  /// An observer gets one call, and no further one while nothing changes. A watch that ended before it began makes no
  /// call.
  @Test func observers() async {
    let reachability = NetworkReachability(host: "127.0.0.1")
    let (stream, continuation) = AsyncStream.makeStream(of: NetworkReachability.Path.self)
    let first = reachability.observe { continuation.yield($0) }
    #expect(await stream.first { _ in true } == .reachable(.loopback))
    first.cancel()
    let calls = Mutex(0)
    let watch = ReachabilityWatch(.nowhere) { _ in calls.withLock { $0 += 1 } }
    watch.end()
    watch.start()
    #expect(await NetworkReachability(host: "127.0.0.1").paths.first { _ in true } != nil)
    #expect(calls.withLock { $0 } == 0)
  }
}
