import Foundation

/// The memory that one read of a stream fills.
@safe
package struct StreamTarget {
  private let base: UnsafeMutablePointer<UInt8>
  private let capacity: Int
  private(set) var count = 0

  /// Creates a target over memory that the caller lends.
  @unsafe
  init(_ base: UnsafeMutablePointer<UInt8>, capacity: Int) {
    // Safe: the target is used only during the call of the function that received the pointer.
    unsafe self.base = unsafe base
    self.capacity = max(capacity, 0)
  }

  /// The number of bytes that still fit.
  var room: Int { capacity - count }

  /// Copies as many bytes as fit.
  ///
  /// - Returns: The number of bytes copied.
  mutating func append(_ bytes: ArraySlice<UInt8>) -> Int {
    let taken = min(bytes.count, room)
    // Safe: `taken` bytes fit after the first `count`, and the source has at least as many.
    unsafe bytes.withUnsafeBufferPointer { source in
      if let start = source.baseAddress { unsafe (base + count).update(from: start, count: taken) }
    }
    count += taken
    return taken
  }

  /// Copies as many bytes as fit.
  ///
  /// - Returns: The number of bytes copied.
  mutating func append(_ data: Data) -> Int {
    let taken = min(data.count, room)
    // Safe: `taken` bytes fit after the first `count`, and the source has at least as many.
    unsafe data.copyBytes(to: base + count, count: taken)
    count += taken
    return taken
  }

  /// Reads once from `stream`, at most `wanted` bytes and at most as many as fit.
  ///
  /// - Returns: The stream's result, but never more than was requested.
  mutating func append(from stream: InputStream, max wanted: Int) -> Int {
    let wanted = min(wanted, room)
    guard wanted > 0 else { return 0 }
    // Safe: the stream writes at most `wanted` bytes, which fit. A program's own stream may report that it wrote more;
    // `min` ignores the excess.
    let taken = unsafe min(stream.read(base + count, maxLength: wanted), wanted)
    count += max(taken, 0)
    return taken
  }
}

/// An input stream whose subclasses produce bytes without pointers.
package class TargetStream: InputStream {
  /// Puts bytes into `target`, in place of `read(_:maxLength:)`.
  ///
  /// - Returns: `false` if the stream has failed.
  func fill(_ target: inout StreamTarget) -> Bool { true }

  package override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
    // Safe: the caller lends `len` bytes for the duration of the call.
    var target = unsafe StreamTarget(buffer, capacity: len)
    return fill(&target) ? target.count : -1
  }

  /// Returns `false`: the stream has no buffer to expose.
  package override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
  ) -> Bool { false }
}
