@_implementationOnly import CLarkspurLinux

/// A socket to the kernel's network configuration (rtnetlink(7)). It sees the network namespace of the thread that made
/// it, wherever it is used.
public final class NetlinkSocket: Sendable {
  /// Large enough for what the kernel puts into one datagram: a page of a listing is at most 32 KiB.
  public static let datagramBytesMax = 64 << 10

  private let descriptor: Descriptor

  /// `hearsChanges`: it is told of changes to links, addresses and routes, and does not block. Otherwise it is for
  /// questions, and a call blocks until the kernel's answer is there.
  public init(hearsChanges: Bool) throws(Errno) {
    let groups = hearsChanges ? UInt32(LARKSPUR_NETLINK_GROUPS) : 0
    let number = larkspur_open_netlink(groups, hearsChanges ? 0 : 1)
    guard number >= 0 else { throw .current }
    descriptor = try Descriptor(number, kernel: LinuxKernel.shared)
  }

  /// For a ``Poller``: readable when there is a change. It stays this object's own.
  public func watch(with poller: borrowing Poller, slot: UInt32) throws(Errno) {
    try poller.watcher.watch(descriptor, slot: slot, registration: 0)
  }

  public func send(_ bytes: [UInt8]) throws(Errno) {
    // Safe: the bytes are lent for the call. Nobody but the kernel is at the other end.
    let sent = unsafe bytes.withUnsafeBytes { unsafe larkspur_send(descriptor.number, $0.baseAddress, $0.count) }
    guard sent == bytes.count else { throw sent < 0 ? .current : .inputOutput }
  }

  /// The messages of the next datagram; none if somebody else than the kernel has sent it.
  ///
  /// `noBufferSpace`: there were more changes than the socket has room for, and some are lost. `wouldBlock`: there are none
  /// now, or the kernel does not answer.
  public func receive() throws(Errno) -> [NetlinkMessage] {
    while true {
      var error = Errno(rawValue: 0)
      let bytes = unsafe [UInt8](unsafeUninitializedCapacity: Self.datagramBytesMax) { buffer, initialized in
        // Safe: no more than the buffer holds is written, and the length says how much it was.
        let length = unsafe larkspur_receive_netlink(descriptor.number, buffer.baseAddress, buffer.count)
        if length < 0 { error = .current }
        if length > buffer.count { error = .noBufferSpace }
        initialized = error.rawValue == 0 ? length : 0
      }
      if error.rawValue == 0 { return NetlinkMessage.messages(in: bytes) }
      if error != .interrupted { throw error }
    }
  }
}
