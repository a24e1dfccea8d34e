import LarkspurBytes

/// Every kernel call that the client makes. Tests put a scripted kernel in its place.
///
/// The calls are thin: one system call each, no retry, no interpretation. They return what the kernel returns,
/// with `-errno` in place of -1.
public protocol Kernel: AnyObject, Sendable {
  /// The monotonic clock.
  func now() -> Deadline
  /// The calendar: seconds since 1970, UTC. For what depends on the date, as certificates do.
  func date() -> Int64

  /// A non-blocking, close-on-exec stream socket for `address`'s family.
  func openSocket(for address: SocketAddress) -> Int32
  /// Gives the socket its own end's address.
  func bind(_ descriptor: Int32, to address: SocketAddress) -> Int32
  /// Lets `connect` choose the port that a coming `bind` leaves open: connections to different servers may share it.
  func deferPort(_ descriptor: Int32)
  /// Sends and receives through one network interface only.
  func bind(_ descriptor: Int32, toInterface name: String) -> Int32
  /// The number of a network interface.
  func interfaceIndex(of name: String) -> Int32
  func connect(_ descriptor: Int32, to address: SocketAddress) -> Int32
  /// The socket's own end, as `bind` or `connect` have chosen it.
  func localAddress(_ descriptor: Int32) -> SocketAddress?
  /// Takes the error that an asynchronous connect left: 0 or an errno (not negated).
  func pendingError(_ descriptor: Int32) -> Int32
  /// Switches off Nagle's algorithm: a request leaves at once.
  func setNoDelay(_ descriptor: Int32)
  /// How much a socket takes beyond what may leave at once.
  func setUnsentBytesMax(_ descriptor: Int32, _ count: Int32)
  /// Marks the packets that are sent, and gives them the kernel's priority for that mark.
  func setTrafficClass(_ descriptor: Int32, _ trafficClass: UInt8)
  /// Appends what has arrived; 0 is the end of the stream.
  func receive(_ descriptor: Int32, into buffer: inout OutputRawSpan) -> Int
  /// Sends at most `count` bytes from the front of `queue`, without taking anything out of it.
  func send(_ descriptor: Int32, from queue: borrowing ByteQueue, atMost count: Int) -> Int
  func send(_ descriptor: Int32, _ bytes: Span<UInt8>) -> Int
  func close(_ descriptor: Int32)

  /// The size of a file, in bytes.
  func fileSize(_ file: Int32) -> Int
  /// Sends from a file to a socket, and leaves the file's own position alone. 0 is the end of the file.
  func sendFile(_ file: Int32, at offset: Int, count: Int, to descriptor: Int32) -> Int
  /// Appends what is in a file, or in a pipe (`offset` is nil then); 0 is the end.
  func readFile(_ file: Int32, at offset: Int?, into buffer: inout OutputRawSpan) -> Int
  /// Writes at the file's own position. It may block.
  func writeFile(_ file: Int32, _ bytes: Span<UInt8>) -> Int
  /// A non-blocking, close-on-exec pipe, as large as the system allows. An error stands in both places.
  func openPipe() -> (reading: Int32, writing: Int32)
  /// Moves bytes between a pipe and something else without a copy.
  func splice(from source: Int32, to target: Int32, count: Int) -> Int

  func openPoller() -> Int32
  /// Watches for reading, writing and hang-up, edge-triggered.
  func watch(_ poller: Int32, _ descriptor: Int32, slot: UInt32, registration: UInt32) -> Int32
  /// Waits for at most `milliseconds` (-1: for ever), and returns the number of events.
  func wait(_ poller: Int32, into events: inout EventBuffer, milliseconds: Int32) -> Int32

  func openWakeUp() -> Int32
  /// Has the poller report a wake-up descriptor, once for each call or for several.
  func wake(_ descriptor: Int32)

  func openTimer() -> Int32
  /// Has the poller report a timer at `moment`, once, and no longer at the moment that was set before.
  func setTimer(_ descriptor: Int32, to moment: Deadline)
}

extension Kernel {
  /// A kernel in memory has no addresses of its own.
  public func localAddress(_ descriptor: Int32) -> SocketAddress? { nil }
}
