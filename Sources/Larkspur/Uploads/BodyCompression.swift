import Foundation
import LarkspurCoding
import LarkspurEngine

extension URLRequest {
  /// The coding that compresses the body while it is sent, with `Content-Encoding`. `nil`, the default, sends the body as it
  /// is. An addition of Larkspur's; curl has no such option. A client cannot know whether a server accepts the coding: some
  /// answer 415 (RFC 9110 12.5.3).
  ///
  /// - Data of at most 64 KiB is compressed at once, and sent with its new length; if it would not become shorter, it is
  ///   sent as it is. Longer data and streams are compressed as they are sent, in chunks, with constant memory: a server that
  ///   speaks HTTP/1.0 only cannot receive them.
  /// - Files (`uploadTask(with:fromFile:)`) are sent by the kernel, and never compressed.
  /// - A request that sets `Content-Encoding` itself, or gets it from the session's `httpAdditionalHeaders`, is not
  ///   compressed again.
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
  /// Creates a compressed body, or one as it is if compression does not make it shorter.
  init(compressing data: Data) throws(URLError) {
    do throws(CodingError) {
      guard let (content, length) = try BodyCompression.body(count: data.count, Self.reader(of: data)) else {
        self.init(data)
        return
      }
      self.init(content: content, length: length)
      isCompressed = true
    } catch {
      throw URLError.make(.unknown, "bodyCompression: \(error)")
    }
  }
}
