import Glibc

/// A socket to the kernel's network configuration (rtnetlink(7)). It belongs to the network namespace of the
/// thread that created it, on any thread.
public final class NetlinkSocket: Sendable {
  /// The size of the largest datagram that the kernel sends, with a margin: a part of a listing has at most 32 KiB.
  public static let datagramBytesMax = 64 << 10

  private let descriptor: Descriptor
  private static let changes =
    RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE

  /// Opens the socket.
  ///
  /// - Parameter hearsChanges: `true` for a non-blocking socket that receives the changes of links, addresses and
  ///   routes; `false` for a socket for requests, whose `receive` blocks for at most 2 s.
  public init(hearsChanges: Bool) throws(Errno) {
    let groups = hearsChanges ? Self.changes : 0
    let number = larkspur_open_netlink(groups, hearsChanges ? 0 : 1)
    guard number >= 0 else { throw .current }
    descriptor = try Descriptor(number, kernel: LinuxKernel.shared)
  }

  /// Registers the socket with a poller, which reports it as readable when there is a change. The socket keeps its
  /// descriptor.
  public func watch(with poller: borrowing Poller, slot: UInt32) throws(Errno) {
    try poller.watcher.watch(descriptor, slot: slot, registration: 0)
  }

  public func send(_ bytes: [UInt8]) throws(Errno) {
    // Safe: the bytes are lent for the call. Only the kernel is at the other end.
    let sent = unsafe bytes.withUnsafeBytes { unsafe larkspur_send(descriptor.number, $0.baseAddress, $0.count) }
    guard sent == bytes.count else { throw sent < 0 ? .current : .inputOutput }
  }

  /// Returns the messages of the next datagram, or none if the kernel did not send it.
  ///
  /// - Throws: `noBufferSpace` if changes were lost, because the socket's buffer was full; `wouldBlock` if there is no
  ///   change now, or the kernel has not answered for 2 s.
  public func receive() throws(Errno) -> [NetlinkMessage] {
    while true {
      var error = Errno(rawValue: 0)
      let bytes = unsafe [UInt8](unsafeUninitializedCapacity: Self.datagramBytesMax) { buffer, initialized in
        // Safe: recvmsg writes at most the buffer's size, and returns the length of the datagram.
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
