import Foundation

extension Data {
  /// Appends a copy of what `bytes` lends.
  mutating func append(copying bytes: Span<UInt8>) {
    // Safe: the buffer is read at once, while it is lent.
    unsafe bytes.withUnsafeBufferPointer { unsafe append($0) }
  }
}
