import LarkspurBytes

/// A non-blocking stream socket that connects to a server, or is connected to one.
public struct ClientSocket: ~Copyable {
  public let descriptor: Descriptor

  public enum Received: Hashable, Sendable {
    /// The number of bytes appended to the chunk. `drained` is `true` if they did not fill its spare room, so that the
    /// socket has nothing left to read now.
    case bytes(Int, drained: Bool)
    case wouldBlock
    /// The peer has closed its sending side.
    case endOfStream
  }

  public init(for address: SocketAddress, usingMultipath: Bool = false, kernel: any Kernel) throws(Errno) {
    let isTCP = address.family != .unix
    let number = usingMultipath && isTCP ? kernel.openMultipathSocket(for: address) : kernel.openSocket(for: address)
    descriptor = try Descriptor(number, kernel: kernel)
    // Only TCP delays small segments (Nagle's algorithm).
    if isTCP { kernel.setNoDelay(descriptor.number) }
  }

  /// Sets the local end of the connection. Call it before `connect`.
  ///
  /// - Throws: `noSuchDevice` for a name that no interface can have, or the error of the kernel's `bind`.
  public func bind(to local: LocalEndpoint) throws(Errno) {
    if local.trafficClass != 0 { descriptor.kernel.setTrafficClass(descriptor.number, local.trafficClass) }
    if let interface = local.interface {
      // The kernel treats an empty name as "any interface", and truncates a name that is too long.
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

  /// The bytes of an upload that the kernel holds and has not sent yet, at most. With a larger value, progress would be
  /// reported long before the bytes leave, and they might take longer to leave than the wait for the response lasts.
  /// With a smaller value, a fast network would wait for the program.
  private static let unsentBytesMax: Int32 = 128 * 1024

  /// Limits the bytes that the kernel takes before it can send them (`TCP_NOTSENT_LOWAT`). By default it takes
  /// megabytes.
  public func limitUnsent() { descriptor.kernel.setUnsentBytesMax(descriptor.number, Self.unsentBytesMax) }

  /// Starts to connect.
  ///
  /// - Returns: `true` if the socket is connected, or `false` if the connect is in progress. Then call
  ///   `finishConnecting` once the socket is writable.
  public func connect(to address: SocketAddress) throws(Errno) -> Bool {
    let result = Errno(rawValue: -descriptor.kernel.connect(descriptor.number, to: address))
    switch result {
    case Errno(rawValue: 0): return true
    // An interrupted connect continues in the background like one in progress (POSIX connect, EINTR).
    case .inProgress, .interrupted: return false
    default: throw result
    }
  }

  public var isMultipath: Bool { descriptor.kernel.isMultipath(descriptor.number) }
  public var localAddress: SocketAddress? { descriptor.kernel.localAddress(descriptor.number) }

  /// Checks the outcome of a connect that was in progress. Call it once the socket is writable.
  ///
  /// - Throws: The error with which the connect failed.
  public func finishConnecting() throws(Errno) {
    let error = descriptor.kernel.pendingError(descriptor.number)
    guard error == 0 else { throw Errno(rawValue: error) }
  }

  /// Receives once into the chunk's spare room.
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

  /// Sends from the queue until it is empty, `count` bytes are sent, or the kernel takes no more.
  ///
  /// - Returns: `false` if the kernel takes no more for now.
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

  /// Sends from the chunk until it is empty or the kernel takes no more.
  ///
  /// - Returns: `false` if the kernel takes no more for now.
  public func send(_ chunk: inout Chunk) throws(Errno) -> Bool {
    while chunk.count > 0 {
      guard let sent = try Self.sent(descriptor.kernel.send(descriptor.number, chunk.bytes)) else { return false }
      chunk.drop(sent)
    }
    return true
  }

  /// Ends the sending side: the peer receives the end of the stream.
  public func closeSending() { descriptor.kernel.shutDownSending(descriptor.number) }

  /// Sends once from a file.
  ///
  /// - Returns: The number of bytes sent, 0 at the end of the file, or `nil` if the kernel takes no more for now.
  public func sendFile(_ file: OpenFile, at offset: Int, count: Int) throws(Errno) -> Int? {
    while true {
      let result = descriptor.kernel.sendFile(file.number, at: offset, count: count, to: descriptor.number)
      if result == 0 { return 0 }
      guard let sent = try Self.sent(result) else { return nil }
      if sent > 0 { return sent }
    }
  }

  /// Converts the result of a sending call.
  ///
  /// - Returns: The number of bytes that the kernel took (0 after an interruption), or `nil` if it takes no more for
  ///   now.
  private static func sent(_ result: Int) throws(Errno) -> Int? {
    if result >= 0 { return result }
    switch Errno(rawValue: Int32(truncatingIfNeeded: -result)) {
    case .interrupted: return 0
    case .wouldBlock: return nil
    case let error: throw error
    }
  }
}
