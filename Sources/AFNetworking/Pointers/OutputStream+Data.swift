import Foundation

extension OutputStream {
  /// Writes all of `data`, and blocks for as long as the stream does. False: the stream has failed, or takes no more.
  func writeAll(_ data: Data) -> Bool {
    // Safe: the stream reads at most as many bytes as there are, while they are lent.
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
