/// The coding that compresses a request's body.
public enum BodyCompression: Hashable, Sendable {
  /// RFC 1952, which most servers of collectors, logs and metrics accept.
  case gzip
}

/// The wrappings of a deflate stream (RFC 1951).
package enum CompressionFormat: Hashable, Sendable, CaseIterable {
  /// RFC 1952: `Content-Encoding: gzip`.
  case gzip
  /// RFC 1950: the meaning of `Content-Encoding: deflate` by RFC 9110, section 8.4.1.2.
  case zlib
  /// No wrapping at all. Some servers send it as `Content-Encoding: deflate`.
  case rawDeflate

  /// zlib's number for the format: the window of 32 KiB (15), plus 16 for gzip, negative for no wrapping.
  var windowBits: Int32 {
    switch self {
    case .gzip: 31
    case .zlib: 15
    case .rawDeflate: -15
    }
  }
}

/// Compresses all of `bytes` at once.
package func compressed(_ bytes: [UInt8], as format: CompressionFormat) throws(CodingError) -> [UInt8] {
  var compressor = try Compressor(format)
  var output: [UInt8] = []
  try compressor.compress(bytes.span, into: &output)
  try compressor.finish(into: &output)
  return output
}
