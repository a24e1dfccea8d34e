import Foundation
import Larkspur

/// Reads a `struct sockaddr` through a pointer.
enum SocketAddressReading {
  /// Returns the reachability of the address. An address of any family other than IPv4 and IPv6 is never reachable.
  @safe static func reachability(at address: UnsafeRawPointer) -> NetworkReachability {
    // Safe: a socket address starts with its family, and the caller passes one that is as long as its family requires.
    let family = unsafe address.loadUnaligned(as: UInt16.self)
    let count = family == 10 ? 28 : family == 2 ? 16 : 2
    let bytes = unsafe Data(bytes: address, count: count)
    return NetworkReachability(socketAddress: bytes) ?? NetworkReachability(host: "")
  }
}
