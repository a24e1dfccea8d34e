import LarkspurBytes
import LarkspurIO

/// A kernel whose sockets are in memory and answer every request at once, so that only the client's cost remains.
/// Pollers, wake-ups, timers and the clock are the system's.
///
/// Used by the thread of a single loop. Other threads only call `wake`, which goes to the system.
final class InstantKernel: Kernel, @unchecked Sendable {
  private struct Socket {
    var slotID: (slot: UInt32, registration: UInt32) = (0, 0)
    var answers = 0
  }

  private let linux = LinuxKernel.shared
  private let answer: [UInt8]
  private var sockets: [Socket] = []
  private var events: [PollerEvent] = []
  /// The first number of a socket in memory. No descriptor of the system is this high.
  private static let firstSocket: Int32 = 1 << 30

  init(bodyBytes: Int) {
    let body = String(repeating: "x", count: bodyBytes)
    answer = Array("HTTP/1.1 200 OK\r\nContent-Length: \(bodyBytes)\r\n\r\n\(body)".utf8)
  }

  private func happened(to descriptor: Int32, isReadable: Bool) {
    let slotID = sockets[Int(descriptor - Self.firstSocket)].slotID
    events.append(
      PollerEvent(
        slot: slotID.slot, registration: slotID.registration, isReadable: isReadable, isWritable: true, isHungUp: false)
    )
  }

  private func requested(_ descriptor: Int32) {
    sockets[Int(descriptor - Self.firstSocket)].answers += 1
    happened(to: descriptor, isReadable: true)
  }

  func now() -> Deadline { linux.now() }
  func date() -> Int64 { linux.date() }

  func openSocket(for address: SocketAddress) -> Int32 {
    sockets.append(Socket())
    return Self.firstSocket + Int32(sockets.count - 1)
  }
  func connect(_ descriptor: Int32, to address: SocketAddress) -> Int32 { 0 }
  func close(_ descriptor: Int32) { if descriptor < Self.firstSocket { linux.close(descriptor) } }

  func receive(_ descriptor: Int32, into buffer: inout OutputRawSpan) -> Int {
    let index = Int(descriptor - Self.firstSocket)
    guard sockets[index].answers > 0 else { return -Int(Errno.wouldBlock.rawValue) }
    sockets[index].answers -= 1
    for byte in answer { buffer.append(byte, as: UInt8.self) }
    return answer.count
  }

  func send(_ descriptor: Int32, from queue: borrowing ByteQueue, atMost count: Int) -> Int {
    requested(descriptor)
    return min(queue.byteCount, count)
  }

  func send(_ descriptor: Int32, _ bytes: Span<UInt8>) -> Int {
    requested(descriptor)
    return bytes.count
  }

  func watch(_ poller: Int32, _ descriptor: Int32, slot: UInt32, registration: UInt32) -> Int32 {
    guard descriptor >= Self.firstSocket else {
      return linux.watch(poller, descriptor, slot: slot, registration: registration)
    }
    sockets[Int(descriptor - Self.firstSocket)].slotID = (slot, registration)
    happened(to: descriptor, isReadable: false)
    return 0
  }

  func wait(_ poller: Int32, into events: inout EventBuffer, milliseconds: Int32) -> Int32 {
    guard !self.events.isEmpty else { return linux.wait(poller, into: &events, milliseconds: milliseconds) }
    let count = events.replace(with: self.events)
    if Int(count) == self.events.count {
      self.events.removeAll(keepingCapacity: true)
    } else {
      self.events.removeFirst(Int(count))
    }
    return count
  }

  func openPoller() -> Int32 { linux.openPoller() }
  func openWakeUp() -> Int32 { linux.openWakeUp() }
  func wake(_ descriptor: Int32) { linux.wake(descriptor) }
  func openTimer() -> Int32 { linux.openTimer() }
  func setTimer(_ descriptor: Int32, to moment: Deadline) { linux.setTimer(descriptor, to: moment) }

  // MARK: - Not used by the benchmark

  private static let unsupported: Int32 = -95

  func bind(_ descriptor: Int32, to address: SocketAddress) -> Int32 { Self.unsupported }
  func bind(_ descriptor: Int32, toInterface name: String) -> Int32 { Self.unsupported }
  func deferPort(_ descriptor: Int32) {}
  func setUnsentBytesMax(_ descriptor: Int32, _ count: Int32) {}
  func setTrafficClass(_ descriptor: Int32, _ trafficClass: UInt8) {}
  func shutDownSending(_ descriptor: Int32) {}
  func interfaceIndex(of name: String) -> Int32 { Self.unsupported }
  func pendingError(_ descriptor: Int32) -> Int32 { 0 }
  func setNoDelay(_ descriptor: Int32) {}
  func fileStatus(_ file: Int32, _ status: inout FileStatus) -> Int { Int(Self.unsupported) }
  func sendFile(_ file: Int32, at offset: Int, count: Int, to descriptor: Int32) -> Int { Int(Self.unsupported) }
  func readFile(_ file: Int32, at offset: Int?, into buffer: inout OutputRawSpan) -> Int { Int(Self.unsupported) }
  func writeFile(_ file: Int32, _ bytes: Span<UInt8>) -> Int { Int(Self.unsupported) }
  func openPipe() -> (reading: Int32, writing: Int32) { (Self.unsupported, Self.unsupported) }
  func splice(from source: Int32, to target: Int32, count: Int) -> Int { Int(Self.unsupported) }
}
