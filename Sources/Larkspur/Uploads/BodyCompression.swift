import Foundation
import LarkspurBytes
import LarkspurCoding
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport

/// The coding that compresses a request's body.
public enum URLRequestBodyCompression: Hashable, Sendable {
  /// RFC 1952, which most servers of collectors, logs and metrics accept.
  case gzip
}

extension URLRequest {
  /// The coding that compresses the body while it is sent, with `Content-Encoding`. `nil`, the default, sends the body as it
  /// is. An addition of Larkspur's; curl has no such option. A client cannot know whether a server accepts the coding: some
  /// answer 415 (RFC 9110 12.5.3).
  ///
  /// - Data of at most 64 KiB is compressed at once, and sent with its new length; if it would not become shorter, it is
  ///   sent as it is. Longer data and streams are compressed as they are sent, in chunks, with constant memory: a server that
  ///   speaks HTTP/1.0 only cannot receive them.
  /// - Files (`uploadTask(with:fromFile:)`) are sent by the kernel, and never compressed.
  /// - A request with a `Content-Encoding` of its own, or of the session's `httpAdditionalHeaders`, is not compressed again.
  /// - Counts of sent bytes are those of the compressed body. Digest authentication with `auth-int` is not possible.
  /// - In background sessions, only the data of a request is compressed.
  public var bodyCompression: BodyCompression? {
    get { own.flags.contains(.gzip) ? .gzip : nil }
    set { change { $0.flags.set(.gzip, newValue == .gzip) } }
  }

  /// Whether a body that is not a file is compressed, beside the fields of the session.
  func compressesBody(in core: SessionCore) -> Bool {
    own.flags.contains(.gzip) && own.fields?.firstValue(named: "Content-Encoding") == nil && !core.composer.namesCoding
  }
}

extension UploadBody {
  /// The field of a compressed body.
  static let compressedField = Field("Content-Encoding", "gzip")

  /// Creates a compressed body, or one as it is if compression does not make it shorter.
  init(compressing data: Data) throws(URLError) {
    guard data.count > Self.copiedBytesMax else {
      let bytes = try Self.compressing { try compressed([UInt8](data), as: .gzip) }
      self.init(bytes.count < data.count ? Data(bytes) : data)
      isCompressed = bytes.count < data.count
      return
    }
    let ranges = stride(from: data.startIndex, to: data.endIndex, by: GzipPieces.bytes)
    self.init(content: .none, length: .chunked)
    isCompressed = true
    content = .produced(length: nil) { writer in
      var pieces = try GzipPieces()
      for start in ranges {
        let end = min(start + GzipPieces.bytes, data.endIndex)
        if let piece = try pieces.add([UInt8](data[start..<end])) { try await writer.write(piece) }
      }
      try await writer.write(try pieces.end())
    }
  }

  private static func compressing(_ body: () throws -> [UInt8]) throws(URLError) -> [UInt8] {
    do { return try body() } catch { throw URLError.make(.unknown, "bodyCompression: \(error)") }
  }
}

/// Compresses a body piece by piece.
struct GzipPieces: ~Copyable {
  /// Size of a piece of data in bytes. Compressing it takes about 1 ms of the loop's time.
  static let bytes = 32 * 1024

  private var compressor: Compressor
  private var output: [UInt8] = []

  init() throws { compressor = try Compressor(.gzip) }

  /// Compresses a piece.
  ///
  /// - Returns: The bytes to send, or `nil` if zlib holds all of them still.
  mutating func add(_ piece: [UInt8]) throws -> [UInt8]? {
    output = []
    try compressor.compress(piece.span, into: &output)
    return output.isEmpty ? nil : output
  }

  /// Returns the end of the body.
  mutating func end() throws -> [UInt8] {
    output = []
    try compressor.finish(into: &output)
    return output
  }
}
