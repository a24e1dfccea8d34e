import LarkspurBytes
import LarkspurIO
import Synchronization

/// The real kernel, which counts its calls, and lets a test replace results of some. Used by one loop.
package final class CountingKernel: Kernel {
  package struct Counts: Sendable {
    package var sends = 0
    package var receives = 0
    package var waits = 0
    /// All other calls, except those that read the clock.
    package var others = 0

    package init() {}

    package static func - (later: Counts, earlier: Counts) -> Counts {
      var difference = later
      difference.sends -= earlier.sends
      difference.receives -= earlier.receives
      difference.waits -= earlier.waits
      difference.others -= earlier.others
      return difference
    }
  }

  // The loop's thread waits while another one may run a tick.
  private let counted = Mutex(Counts())
  package var counts: Counts { counted.withLock { $0 } }
  /// Returns the result of the next send, or `nil` if the real kernel is to send. A result that is too large counts as
  /// all bytes.
  private let replaceSend: @Sendable () -> Int?
  /// Returns the result of the next receive, or `nil` if the real kernel is to receive.
  private let replaceReceive: @Sendable () -> Int?
  /// Returns the result of the next wait, or `nil` if the real kernel is to wait.
  private let replaceWait: @Sendable () -> Int32?
  private let kernel = LinuxKernel.shared

  package init(
    replaceSend: @escaping @Sendable () -> Int? = { nil }, replaceReceive: @escaping @Sendable () -> Int? = { nil },
    replaceWait: @escaping @Sendable () -> Int32? = { nil }
  ) {
    self.replaceSend = replaceSend
    self.replaceReceive = replaceReceive
    self.replaceWait = replaceWait
  }

  package func now() -> Deadline { kernel.now() }
  package func date() -> Int64 { kernel.date() }

  package func receive(_ descriptor: Int32, into buffer: inout OutputRawSpan) -> Int {
    counted.withLock { $0.receives += 1 }
    return replaceReceive() ?? kernel.receive(descriptor, into: &buffer)
  }

  package func send(_ descriptor: Int32, from queue: borrowing ByteQueue, atMost count: Int) -> Int {
    counted.withLock { $0.sends += 1 }
    return replaceSend().map { min($0, queue.byteCount, count) }
      ?? kernel.send(descriptor, from: queue, atMost: count)
  }

  package func send(_ descriptor: Int32, _ bytes: Span<UInt8>) -> Int {
    counted.withLock { $0.sends += 1 }
    return replaceSend().map { min($0, bytes.count) } ?? kernel.send(descriptor, bytes)
  }

  package func wait(_ poller: Int32, into events: inout EventBuffer, milliseconds: Int32) -> Int32 {
    let result = replaceWait() ?? kernel.wait(poller, into: &events, milliseconds: milliseconds)
    // Signals and debuggers interrupt waits, and the loop then waits again: such waits are not a request's cost.
    if result != -Errno.interrupted.rawValue { counted.withLock { $0.waits += 1 } }
    return result
  }

  private func other<T>(_ body: () -> T) -> T {
    counted.withLock { $0.others += 1 }
    return body()
  }

  package func openSocket(for address: SocketAddress) -> Int32 { other { kernel.openSocket(for: address) } }
  package func bind(_ descriptor: Int32, to address: SocketAddress) -> Int32 {
    other { kernel.bind(descriptor, to: address) }
  }
  package func deferPort(_ descriptor: Int32) { other { kernel.deferPort(descriptor) } }
  package func setUnsentBytesMax(_ descriptor: Int32, _ count: Int32) {
    other { kernel.setUnsentBytesMax(descriptor, count) }
  }
  package func shutDownSending(_ descriptor: Int32) { other { kernel.shutDownSending(descriptor) } }
  package func setTrafficClass(_ descriptor: Int32, _ trafficClass: UInt8) {
    other { kernel.setTrafficClass(descriptor, trafficClass) }
  }
  package func bind(_ descriptor: Int32, toInterface name: String) -> Int32 {
    other { kernel.bind(descriptor, toInterface: name) }
  }
  package func interfaceIndex(of name: String) -> Int32 { other { kernel.interfaceIndex(of: name) } }
  package func connect(_ descriptor: Int32, to address: SocketAddress) -> Int32 {
    other { kernel.connect(descriptor, to: address) }
  }
  package func pendingError(_ descriptor: Int32) -> Int32 { other { kernel.pendingError(descriptor) } }
  package func setNoDelay(_ descriptor: Int32) { other { kernel.setNoDelay(descriptor) } }
  package func close(_ descriptor: Int32) { other { kernel.close(descriptor) } }
  package func fileStatus(_ file: Int32, _ status: inout FileStatus) -> Int {
    counted.withLock { $0.others += 1 }
    return kernel.fileStatus(file, &status)
  }
  package func sendFile(_ file: Int32, at offset: Int, count: Int, to descriptor: Int32) -> Int {
    other { kernel.sendFile(file, at: offset, count: count, to: descriptor) }
  }
  package func readFile(_ file: Int32, at offset: Int?, into buffer: inout OutputRawSpan) -> Int {
    counted.withLock { $0.others += 1 }
    return kernel.readFile(file, at: offset, into: &buffer)
  }
  package func writeFile(_ file: Int32, _ bytes: Span<UInt8>) -> Int {
    counted.withLock { $0.others += 1 }
    return kernel.writeFile(file, bytes)
  }
  package func openPipe() -> (reading: Int32, writing: Int32) { other { kernel.openPipe() } }
  package func splice(from source: Int32, to target: Int32, count: Int) -> Int {
    other { kernel.splice(from: source, to: target, count: count) }
  }
  package func openPoller() -> Int32 { other { kernel.openPoller() } }
  package func watch(_ poller: Int32, _ descriptor: Int32, slot: UInt32, registration: UInt32) -> Int32 {
    other { kernel.watch(poller, descriptor, slot: slot, registration: registration) }
  }
  package func openWakeUp() -> Int32 { other { kernel.openWakeUp() } }
  package func wake(_ descriptor: Int32) { other { kernel.wake(descriptor) } }
  package func openTimer() -> Int32 { other { kernel.openTimer() } }
  package func setTimer(_ descriptor: Int32, to moment: Deadline) { other { kernel.setTimer(descriptor, to: moment) } }
}
