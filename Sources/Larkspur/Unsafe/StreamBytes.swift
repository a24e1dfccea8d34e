import Foundation
import LarkspurIO

/// Functions that read from streams, whose own functions take pointers.
package enum StreamBytes {
  /// Reads like `InputStream.read`.
  ///
  /// - Returns: The number of bytes; 0 at the end, or if there are no bytes yet; below 0 for an error.
  package static func read(_ stream: InputStream, into buffer: inout [UInt8]) -> Int {
    // Safe: the stream writes at most as many bytes as the buffer has, while it is lent.
    unsafe buffer.withUnsafeMutableBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return 0 }
      return unsafe min(stream.read(base, maxLength: bytes.count), bytes.count)
    }
  }

  /// Whether the URL is that of a regular file, which can be read without blocking. A read of a pipe without a writer
  /// may block for ever.
  package static func isRegularFile(_ url: URL) -> Bool {
    if case .regularFile? = try? FilePaths.kind(of: url.path) { true } else { false }
  }

  /// The error with which a stream has failed. Foundation's streams end the process if they are asked for an error
  /// without having failed.
  package static func error(of stream: Stream) -> (any Error)? {
    stream.streamStatus == .error ? stream.streamError : nil
  }
}
