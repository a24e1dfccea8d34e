import Foundation

extension OutputStream {
  /// Writes all of `data`. Blocks while the stream blocks.
  ///
  /// - Returns: `false` if the stream fails, or accepts no more bytes.
  func writeAll(_ data: Data) -> Bool {
    // Safe: the stream reads at most `rest.count` bytes, and only during the call.
    unsafe data.withUnsafeBytes { bytes in
      var rest = unsafe bytes.bindMemory(to: UInt8.self)[...]
      while let base = unsafe UnsafeBufferPointer(rebasing: rest).baseAddress, unsafe !rest.isEmpty {
        let written = unsafe write(base, maxLength: rest.count)
        guard written > 0 else { return false }
        unsafe rest = rest.dropFirst(written)
      }
      return true
    }
  }
}
