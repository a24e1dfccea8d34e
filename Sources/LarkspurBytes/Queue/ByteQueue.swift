/// Bytes to be sent. Arrays are queued without a copy and leave in gathered writes.
///
/// The queue allocates only when it holds more segments than ever before.
public struct ByteQueue: ~Copyable {
  @usableFromInline var segments: [[UInt8]] = []
  @usableFromInline var first = 0
  /// The number of bytes of the first segment that were dropped.
  @usableFromInline private(set) var firstOffset = 0
  public private(set) var byteCount = 0

  public init() {}

  @inlinable
  public var isEmpty: Bool { byteCount == 0 }

  public var segmentCount: Int { segments.count - first }

  public mutating func append(_ bytes: [UInt8]) {
    guard !bytes.isEmpty else { return }
    segments.append(bytes)
    byteCount += bytes.count
  }

  /// Removes the first `count` bytes, which have been written.
  public mutating func drop(_ count: Int) {
    var left = min(max(count, 0), byteCount)
    byteCount -= left
    guard byteCount > 0 else {
      if segments.count == 1 { segments.removeLast() } else { removeAll() }
      first = 0
      firstOffset = 0
      return
    }
    while left > 0 {
      let remaining = segments[first].count - firstOffset
      guard left >= remaining else {
        firstOffset += left
        break
      }
      left -= remaining
      segments[first] = []
      first += 1
      firstOffset = 0
    }
    // A queue that never becomes empty must not keep its dropped segments. Remove them once they are more than half.
    if first > 16, first * 2 > segments.count {
      segments.removeFirst(first)
      first = 0
    }
  }

  /// Lends the rest of the first segment, or an empty span if the queue is empty.
  @inlinable
  public borrowing func lendFirst<T, E: Error>(to body: (Span<UInt8>) throws(E) -> T) throws(E) -> T {
    guard !isEmpty else { return try body(Span()) }
    return try body(segment(0).span.extracting(firstOffset...))
  }

  public mutating func removeAll() {
    segments.removeAll(keepingCapacity: true)
    first = 0
    firstOffset = 0
    byteCount = 0
  }

  @inlinable
  func segment(_ index: Int) -> [UInt8] { segments[first + index] }
}
