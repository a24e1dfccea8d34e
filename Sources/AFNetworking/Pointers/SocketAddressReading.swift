import Foundation
import Larkspur

/// Reading of a `struct sockaddr` that a pointer leads to.
enum SocketAddressReading {
  /// Of an address of another family: a way that never is.
  @safe static func reachability(at address: UnsafeRawPointer) -> NetworkReachability {
    // Safe: whoever passes a socket address passes one that is as long as its family says; the family stands first.
    let family = unsafe address.loadUnaligned(as: UInt16.self)
    let count = family == 10 ? 28 : family == 2 ? 16 : 2
    let bytes = unsafe Data(bytes: address, count: count)
    return NetworkReachability(socketAddress: bytes) ?? NetworkReachability(host: "")
  }
}
