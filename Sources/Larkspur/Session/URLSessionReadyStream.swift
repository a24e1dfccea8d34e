import Foundation

/// An input stream that knows whether its reads ever wait for anybody.
///
/// An addition of Larkspur's. Nobody can tell from the outside: a stream may be waiting for a peer, for a pipe or for
/// another thread, so a session gives each body that is a stream a thread if need be. Hundreds of bodies that are read
/// from files or from memory need no more than a few threads: a stream of this protocol can say that it is one of them.
///
/// It is used on one thread at a time: unlike other streams of a program's own it is never closed while it is being read.
public protocol URLSessionReadyStream: InputStream {
  /// Whether a read returns as soon as the kernel has the bytes. Asked once, when the body begins, on any thread.
  var isReadWithoutWaiting: Bool { get }
}
