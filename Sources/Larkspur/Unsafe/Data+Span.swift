import Foundation

extension Data {
  /// Creates a copy of the bytes of a span.
  init(copying bytes: Span<UInt8>) {
    // Safe: `Data(buffer:)` copies the bytes at once, while they are lent.
    self = unsafe bytes.withUnsafeBufferPointer { unsafe Data(buffer: $0) }
  }

  /// Appends a copy of the bytes of a span.
  mutating func append(copying bytes: Span<UInt8>) {
    // Safe: `append` copies the bytes at once, while they are lent.
    unsafe bytes.withUnsafeBufferPointer { unsafe append($0) }
  }
}
