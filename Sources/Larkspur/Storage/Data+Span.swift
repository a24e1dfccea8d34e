import Foundation

extension Data {
  /// A copy of what `bytes` lends.
  init(copying bytes: Span<UInt8>) {
    // Safe: as below.
    self = unsafe bytes.withUnsafeBufferPointer { unsafe Data(buffer: $0) }
  }

  /// Appends a copy of what `bytes` lends.
  mutating func append(copying bytes: Span<UInt8>) {
    // Safe: the buffer is read at once, while it is lent.
    unsafe bytes.withUnsafeBufferPointer { unsafe append($0) }
  }
}
