import Foundation

/// An input stream that states whether its reads can block.
///
/// An addition of Larkspur's. A session cannot see whether a stream waits for a peer, for a pipe or for another thread,
/// so each body that is a stream may occupy a thread. Hundreds of bodies that come from files or from memory need only
/// a few threads: a stream of this protocol can state that it is one of these.
///
/// The session uses the stream on one thread at a time. Unlike the program's other stream classes, it is never closed
/// while it is being read.
public protocol URLSessionNonblockingInputStream: InputStream {
  /// Whether a read returns as soon as the kernel has the bytes. Read once, when the body starts, on any thread.
  var readsWithoutBlocking: Bool { get }
}
