import LarkspurBytes

/// The system calls that loops and their connections make. Tests replace it with a scripted kernel.
///
/// The methods are thin: they neither retry nor interpret. Where they return an integer, it is the kernel's result,
/// with the negated error number in place of -1.
public protocol Kernel: AnyObject, Sendable {
  /// Returns the current moment on the monotonic clock.
  func now() -> Deadline
  /// Returns the seconds since 1970 (UTC), for checks that depend on the date, such as those of certificates.
  func date() -> Int64

  /// Opens a non-blocking, close-on-exec stream socket for the family of `address`.
  func openSocket(for address: SocketAddress) -> Int32
  /// Opens such a socket for multipath TCP, or for TCP where the kernel has no multipath TCP.
  func openMultipathSocket(for address: SocketAddress) -> Int32
  /// Whether the connected socket uses multipath TCP: `false` if the peer, or a machine on the way, does not.
  func isMultipath(_ descriptor: Int32) -> Bool
  /// Sets the socket's local address.
  func bind(_ descriptor: Int32, to address: SocketAddress) -> Int32
  /// Lets `connect` choose the port when a later `bind` leaves it open. Connections to different servers may then share
  /// a port.
  func deferPort(_ descriptor: Int32)
  /// Restricts the socket to one network interface.
  func bind(_ descriptor: Int32, toInterface name: String) -> Int32
  /// Returns the index of a network interface.
  func interfaceIndex(of name: String) -> Int32
  func connect(_ descriptor: Int32, to address: SocketAddress) -> Int32
  /// Returns the socket's local address, as `bind` or `connect` chose it.
  func localAddress(_ descriptor: Int32) -> SocketAddress?
  /// Returns and clears the error of an asynchronous connect: 0 or an error number, not negated.
  func pendingError(_ descriptor: Int32) -> Int32
  /// Switches off Nagle's algorithm, so that a request leaves at once.
  func setNoDelay(_ descriptor: Int32)
  /// Limits the bytes that a TCP socket takes before it can send them (`TCP_NOTSENT_LOWAT`).
  func setUnsentBytesMax(_ descriptor: Int32, _ count: Int32)
  /// Sets the traffic class of the socket's packets, and the kernel's priority for that class.
  func setTrafficClass(_ descriptor: Int32, _ trafficClass: UInt8)
  /// Receives into `buffer`, behind what it holds. Returns 0 at the end of the stream.
  func receive(_ descriptor: Int32, into buffer: inout OutputRawSpan) -> Int
  /// Sends at most `count` bytes from the front of `queue`, and leaves the queue as it is.
  func send(_ descriptor: Int32, from queue: borrowing ByteQueue, atMost count: Int) -> Int
  func send(_ descriptor: Int32, _ bytes: Span<UInt8>) -> Int
  /// Ends the sending side of a connection: the peer receives the end of the stream.
  func shutDownSending(_ descriptor: Int32)
  func close(_ descriptor: Int32)

  /// Gets the status of a file.
  func fileStatus(_ file: Int32, _ status: inout FileStatus) -> Int
  /// Sends from a file to a socket. Does not move the file's position. Returns 0 at the end of the file.
  func sendFile(_ file: Int32, at offset: Int, count: Int, to descriptor: Int32) -> Int
  /// Reads from a file, or, if `offset` is `nil`, from a pipe, into `buffer` behind what it holds. Returns 0 at the
  /// end.
  func readFile(_ file: Int32, at offset: Int?, into buffer: inout OutputRawSpan) -> Int
  /// Writes at the file's position. May block.
  func writeFile(_ file: Int32, _ bytes: Span<UInt8>) -> Int
  /// Opens a non-blocking, close-on-exec pipe of 1 MiB, or of the default size if the system allows no more. An error
  /// stands in both members.
  func openPipe() -> (reading: Int32, writing: Int32)
  /// Moves bytes between a pipe and another descriptor without a copy.
  func splice(from source: Int32, to target: Int32, count: Int) -> Int

  func openPoller() -> Int32
  /// Registers the descriptor for reading, writing and hang-up, edge-triggered.
  func watch(_ poller: Int32, _ descriptor: Int32, slot: UInt32, registration: UInt32) -> Int32
  /// Waits for at most `milliseconds`, or without limit if it is -1. Returns the number of events.
  func wait(_ poller: Int32, into events: inout EventBuffer, milliseconds: Int32) -> Int32

  func openWakeUp() -> Int32
  /// Makes the poller report the wake-up descriptor. Several calls may lead to one report.
  func wake(_ descriptor: Int32)

  func openTimer() -> Int32
  /// Makes the poller report the timer once at `moment`. Replaces a moment that was set before.
  func setTimer(_ descriptor: Int32, to moment: Deadline)
}

extension Kernel {
  /// Returns `nil`: a simulated kernel need not have local addresses.
  public func localAddress(_ descriptor: Int32) -> SocketAddress? { nil }
  /// Opens a socket for TCP: a simulated kernel need not have multipath TCP.
  public func openMultipathSocket(for address: SocketAddress) -> Int32 { openSocket(for: address) }
  public func isMultipath(_ descriptor: Int32) -> Bool { false }
}
