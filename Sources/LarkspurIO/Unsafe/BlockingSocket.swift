import Glibc
import LarkspurBytes

/// A connected socket whose calls block their thread, for servers with one thread for each connection and for
/// tests that talk to such servers.
///
/// Use it on one thread. `shutDown` may be called on any thread while the socket is alive, and makes a blocked call
/// return.
public final class BlockingSocket: Sendable {
  private let number: Int32

  fileprivate init(number: Int32) {
    self.number = number
  }

  /// Connects to `address`. Blocks until the connection is open.
  ///
  /// - Parameter deadline: A stopped process accepts nothing: when its backlog is full, no further connection is
  ///   opened.
  /// - Throws: `timedOut` at the deadline, to the millisecond.
  public static func connect(
    to address: SocketAddress, until deadline: Deadline = .never
  ) throws(Errno) -> BlockingSocket {
    let number = larkspur_blocking_socket(address.familyNumber)
    guard number >= 0 else { throw .current }
    let socket = BlockingSocket(number: number)
    let timeout = deadline.timeoutMilliseconds(from: Deadline(nanoseconds: larkspur_monotonic_nanoseconds()))
    // The kernel takes 0 for no limit.
    guard timeout < 0 || larkspur_set_send_timeout(number, max(timeout, 1)) == 0 else { throw .current }
    // Safe: the address is lent for the call.
    guard try unsafe address.withSockAddr({ unsafe Glibc.connect(number, $0, $1) }) == 0 else {
      let error = Errno.current
      // The kernel's words for a timeout: of a Unix socket, and of an internet socket.
      throw error == .wouldBlock || error == .inProgress ? .timedOut : error
    }
    guard timeout < 0 || larkspur_set_send_timeout(number, 0) == 0 else { throw .current }
    return socket
  }

  deinit {
    _ = close(number)
  }

  /// Receives bytes. Blocks until some have arrived.
  ///
  /// - Returns: One to `count` bytes, or none at the end of the stream.
  /// - Throws: `timedOut` if neither has arrived at the deadline.
  public func receive(atMost count: Int, until deadline: Deadline = .never) throws(Errno) -> [UInt8] {
    while true {
      try wait(for: POLLIN, until: deadline)
      var error = Errno(rawValue: 0)
      let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
        // Safe: recv writes at most `count` bytes, and returns their number.
        let received = unsafe recv(number, buffer.baseAddress, count, 0)
        if received < 0 { error = .current }
        initialized = max(received, 0)
      }
      if error.rawValue == 0 { return bytes }
      if error != .interrupted { throw error }
    }
  }

  /// Sends all bytes. Blocks while the kernel takes no more.
  public func send(_ bytes: [UInt8]) throws(Errno) { try send(bytes.span) }

  /// Waits until a call does not block. Without a deadline the call itself waits.
  private func wait(for event: Int32, until deadline: Deadline) throws(Errno) {
    if deadline == .never { return }
    guard try EventWait.until(deadline, event: event, of: number) else { throw .timedOut }
  }

  /// Sends all bytes. Blocks while the kernel takes no more.
  ///
  /// - Throws: `timedOut` if the kernel has not taken all at the deadline.
  public func send(_ bytes: Span<UInt8>, until deadline: Deadline) throws(Errno) {
    var offset = 0
    while offset < bytes.count {
      try wait(for: POLLOUT, until: deadline)
      offset += try sendNow(bytes.extracting(offset...))
    }
  }

  /// Sends all bytes. Blocks while the kernel takes no more.
  public func send(_ bytes: Span<UInt8>) throws(Errno) {
    var offset = 0
    while offset < bytes.count {
      // Safe: the span is lent for the call, which reads at most its length.
      let sent = unsafe bytes.extracting(offset...).withUnsafeBufferPointer { rest in
        unsafe larkspur_send(number, rest.baseAddress, rest.count)
      }
      if sent >= 0 {
        offset += sent
      } else if Errno.current != .interrupted {
        throw .current
      }
    }
  }

  /// Sends as many bytes as the kernel takes at once.
  ///
  /// - Returns: The number of bytes, possibly 0.
  public func sendNow(_ bytes: Span<UInt8>) throws(Errno) -> Int {
    while true {
      // Safe: the span is lent for the call, which reads at most its length.
      let sent = unsafe bytes.withUnsafeBufferPointer {
        unsafe Glibc.send(number, $0.baseAddress, $0.count, MSG_NOSIGNAL | MSG_DONTWAIT)
      }
      if sent >= 0 { return sent }
      switch Errno.current {
      case .interrupted: continue
      case .wouldBlock: return 0
      case let error: throw error
      }
    }
  }

  /// The user of the process at the other end of a Unix socket (SO_PEERCRED), as at the time of the connection.
  public func peerUser() throws(Errno) -> UInt32 { try peer().user }

  /// The process at the other end of a Unix socket, as at the time of the connection.
  public func peerProcess() throws(Errno) -> Int32 { try peer().process }

  private func peer() throws(Errno) -> (process: Int32, user: UInt32) {
    var (process, user): (Int32, UInt32) = (0, 0)
    // Safe: the call writes one value to each variable.
    guard unsafe larkspur_peer(number, &process, &user) == 0 else { throw .current }
    return (process, user)
  }

  /// Waits until the peer ends its sending side, the connection breaks, or `shutDown` is called. Bytes that arrive
  /// meanwhile stay unread.
  ///
  /// - Returns: `false` if none of these happens until the deadline, or if the kernel cannot wait.
  public func waitForPeerEnd(until deadline: Deadline = .never) -> Bool {
    (try? EventWait.until(deadline, event: Int32(POLLRDHUP), of: number)) ?? false
  }

  /// Whether `receive` would return at once.
  public var isReadable: Bool { larkspur_wait_for_event(number, Int16(POLLIN), 0) == 1 }

  /// Ends the sending side. The peer reads the end of the stream, and may continue to send.
  public func shutDownWriting() { _ = shutdown(number, Int32(SHUT_WR)) }

  /// Ends both sides. The peer reads the end of the stream, and a blocked call on this socket returns.
  public func shutDown() { _ = shutdown(number, Int32(SHUT_RDWR)) }

  /// Makes the coming close a reset (RST). The peer loses the bytes that it has not read yet.
  public func resetOnClose() { _ = larkspur_linger_zero(number) }

  /// Makes each `send` leave at once as a separate segment.
  public func setNoDelay() { _ = larkspur_set_integer_option(number, Int32(IPPROTO_TCP), TCP_NODELAY, 1) }

  /// Sets the size of the send buffer. With a small one, a peer's back-pressure shows after few bytes.
  public func setSendBuffer(bytes: Int) {
    _ = larkspur_set_integer_option(number, SOL_SOCKET, SO_SNDBUF, Int32(clamping: bytes))
  }
}

/// A listening socket whose `accept` blocks its thread.
public final class BlockingListener: Sendable {
  private let number: Int32
  /// The port that the socket listens on, or 0 for a Unix socket.
  public let port: UInt16

  /// Creates a socket that listens on `address`. For port 0 the kernel chooses the port.
  public init(address: SocketAddress, backlog: Int32 = 1024) throws(Errno) {
    let number = larkspur_blocking_socket(address.familyNumber)
    guard number >= 0 else { throw .current }
    self.number = number
    do throws(Errno) {
      _ = larkspur_set_integer_option(number, SOL_SOCKET, SO_REUSEADDR, 1)
      // Safe: the address is lent for the call.
      let bound = try unsafe address.withSockAddr { unsafe bind(number, $0, $1) }
      guard bound == 0, listen(number, backlog) == 0 else { throw .current }
    } catch {
      _ = close(number)
      throw error
    }
    port = LinuxKernel.shared.localAddress(number)?.port ?? 0
  }

  deinit {
    _ = close(number)
  }

  /// Accepts the next connection. Blocks until there is one.
  public func accept() throws(Errno) -> BlockingSocket {
    while true {
      let accepted = larkspur_blocking_accept(number)
      if accepted >= 0 { return BlockingSocket(number: accepted) }
      // A signal interrupted the call, or the client closed the connection before it was accepted.
      let error = Errno.current
      guard error == .interrupted || error.rawValue == ECONNABORTED else { throw error }
    }
  }

  /// Makes a blocked `accept` fail, and refuses further connections. May be called on any thread.
  public func shutDown() { _ = shutdown(number, Int32(SHUT_RDWR)) }
}
