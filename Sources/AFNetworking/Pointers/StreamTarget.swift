import Foundation

/// Where a stream puts the bytes that it is asked for.
@safe
struct StreamTarget {
  private let base: UnsafeMutablePointer<UInt8>
  private let capacity: Int
  private(set) var count = 0

  /// For as long as somebody else lends the memory.
  @unsafe
  init(_ base: UnsafeMutablePointer<UInt8>, capacity: Int) {
    // Safe: the pointer is used as long as this is, within one call of the function that was given it.
    unsafe self.base = unsafe base
    self.capacity = max(capacity, 0)
  }

  /// How many bytes are still wanted.
  var room: Int { capacity - count }

  /// Takes as many as there is room for. Returns how many that are.
  mutating func append(_ bytes: ArraySlice<UInt8>) -> Int {
    let taken = min(bytes.count, room)
    // Safe: `taken` bytes fit behind the `count` that are there, and the source has as many.
    unsafe bytes.withUnsafeBufferPointer { source in
      if let start = source.baseAddress { unsafe (base + count).update(from: start, count: taken) }
    }
    count += taken
    return taken
  }

  /// As `append(_:)`.
  mutating func append(_ data: Data) -> Int {
    let taken = min(data.count, room)
    // Safe: `taken` bytes fit behind the `count` that are there, and the source has as many.
    unsafe data.copyBytes(to: base + count, count: taken)
    count += taken
    return taken
  }

  /// Reads once. Returns what the stream returned, and nothing that does not fit.
  mutating func append(from stream: InputStream, max wanted: Int) -> Int {
    let wanted = min(wanted, room)
    guard wanted > 0 else { return 0 }
    // Safe: the stream writes at most as many bytes as there is room for. One of a caller's own that says it wrote more
    // than that is not believed.
    let taken = unsafe min(stream.read(base + count, maxLength: wanted), wanted)
    count += max(taken, 0)
    return taken
  }
}

/// An input stream whose bytes are told without pointers.
class TargetStream: InputStream {
  /// As `read(_:maxLength:)`: puts bytes into `target`. False: it has failed.
  func fill(_ target: inout StreamTarget) -> Bool { true }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
    // Safe: the caller lends `len` bytes, for as long as this call.
    var target = unsafe StreamTarget(buffer, capacity: len)
    return fill(&target) ? target.count : -1
  }

  /// The bytes are nowhere where they could be looked at.
  override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
  ) -> Bool { false }
}
