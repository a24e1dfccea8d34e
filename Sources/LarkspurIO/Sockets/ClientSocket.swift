import LarkspurBytes

/// A non-blocking stream socket on its way to a server, or connected to one.
public struct ClientSocket: ~Copyable {
  public let descriptor: Descriptor

  public enum Received: Hashable, Sendable {
    /// So many bytes were appended. `drained`: fewer than there was room for, so that nothing is left now.
    case bytes(Int, drained: Bool)
    case wouldBlock
    /// The peer has closed its sending side.
    case endOfStream
  }

  public init(for address: SocketAddress, kernel: any Kernel) throws(Errno) {
    descriptor = try Descriptor(kernel.openSocket(for: address), kernel: kernel)
    // Only TCP holds small pieces back.
    if address.family != .unix { kernel.setNoDelay(descriptor.number) }
  }

  /// Chooses this end of the connection, before `connect`.
  public func bind(to local: LocalEndpoint) throws(Errno) {
    if local.trafficClass != 0 { descriptor.kernel.setTrafficClass(descriptor.number, local.trafficClass) }
    if let interface = local.interface {
      // The kernel would take an empty name for "any", and cut one that is too long.
      guard NetworkInterface.isName(interface) else { throw .noSuchDevice }
      try Self.check(descriptor.kernel.bind(descriptor.number, toInterface: interface))
    }
    if let address = local.address {
      if address.port == 0 { descriptor.kernel.deferPort(descriptor.number) }
      try Self.check(descriptor.kernel.bind(descriptor.number, to: address))
    }
  }

  private static func check(_ result: Int32) throws(Errno) {
    if result < 0 { throw Errno(rawValue: -result) }
  }

  /// What the kernel holds of an upload beyond what is on its way. More of it would be told as sent long before it leaves,
  /// and might take longer to leave than anybody waits for the answer; with less, a fast network would wait for us.
  private static let unsentBytesMax: Int32 = 128 * 1024

  /// Has the kernel take what is sent only when it may soon leave (`TCP_NOTSENT_LOWAT`). By itself it takes megabytes.
  public func limitUnsent() { descriptor.kernel.setUnsentBytesMax(descriptor.number, Self.unsentBytesMax) }

  /// Begins to connect. True: connected at once; false: `finishConnecting` tells, when the socket is writable.
  public func connect(to address: SocketAddress) throws(Errno) -> Bool {
    let result = Errno(rawValue: -descriptor.kernel.connect(descriptor.number, to: address))
    switch result {
    case Errno(rawValue: 0): return true
    // An interrupted connect goes on in the background like any other (POSIX connect, EINTR).
    case .inProgress, .interrupted: return false
    default: throw result
    }
  }

  public var localAddress: SocketAddress? { descriptor.kernel.localAddress(descriptor.number) }

  /// The outcome of a connect that had to wait.
  public func finishConnecting() throws(Errno) {
    let error = descriptor.kernel.pendingError(descriptor.number)
    guard error == 0 else { throw Errno(rawValue: error) }
  }

  /// One receive into the chunk's spare room.
  public func receive(into chunk: inout Chunk) throws(Errno) -> Received {
    let room = chunk.spareCapacity
    while true {
      var result = 0
      chunk.withSpare { result = descriptor.kernel.receive(descriptor.number, into: &$0) }
      if result > 0 { return .bytes(result, drained: result < room) }
      if result == 0 { return .endOfStream }
      switch Errno(rawValue: Int32(truncatingIfNeeded: -result)) {
      case .interrupted: continue
      case .wouldBlock: return .wouldBlock
      case let error: throw error
      }
    }
  }

  /// Sends as much of the queue as the kernel takes, and at most `count` bytes. False: it takes no more for now.
  public func send(_ queue: inout ByteQueue, atMost count: Int = .max) throws(Errno) -> Bool {
    var left = count
    while !queue.isEmpty, left > 0 {
      guard let sent = try Self.sent(descriptor.kernel.send(descriptor.number, from: queue, atMost: left)) else {
        return false
      }
      queue.drop(sent)
      left -= sent
    }
    return true
  }

  /// Sends as much of the chunk as the kernel takes. False: it takes no more for now.
  public func send(_ chunk: inout Chunk) throws(Errno) -> Bool {
    while chunk.count > 0 {
      guard let sent = try Self.sent(descriptor.kernel.send(descriptor.number, chunk.bytes)) else { return false }
      chunk.drop(sent)
    }
    return true
  }

  /// Sends once from a file. Nil: the kernel takes no more for now. 0: the file ends there.
  public func sendFile(_ file: OpenFile, at offset: Int, count: Int) throws(Errno) -> Int? {
    while true {
      let result = descriptor.kernel.sendFile(file.number, at: offset, count: count, to: descriptor.number)
      if result == 0 { return 0 }
      guard let sent = try Self.sent(result) else { return nil }
      if sent > 0 { return sent }
    }
  }

  /// How many bytes the kernel took: none when it was interrupted, nil when it takes no more.
  private static func sent(_ result: Int) throws(Errno) -> Int? {
    if result >= 0 { return result }
    switch Errno(rawValue: Int32(truncatingIfNeeded: -result)) {
    case .interrupted: return 0
    case .wouldBlock: return nil
    case let error: throw error
    }
  }
}
