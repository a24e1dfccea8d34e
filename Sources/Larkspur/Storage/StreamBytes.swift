import Foundation
import LarkspurIO

/// Reading of streams, whose functions take pointers.
package enum StreamBytes {
  /// As `InputStream.read`: zero is the end, or nothing yet; below zero is an error.
  package static func read(_ stream: InputStream, into buffer: inout [UInt8]) -> Int {
    // Safe: the stream writes at most as many bytes as the buffer has, while it is lent.
    unsafe buffer.withUnsafeMutableBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return 0 }
      return unsafe min(stream.read(base, maxLength: bytes.count), bytes.count)
    }
  }

  /// Whether the file that is there can be read without waiting: a pipe may have nobody who writes into it.
  package static func isRegularFile(_ url: URL) -> Bool {
    if case .regularFile? = try? FilePaths.kind(of: url.path) { true } else { false }
  }

  /// What a stream has failed with. Foundation's end the process if they are asked without having failed.
  package static func error(of stream: Stream) -> (any Error)? {
    stream.streamStatus == .error ? stream.streamError : nil
  }
}
