import Foundation
import LarkspurCoding
import LarkspurEngine
import LarkspurHTTP

extension ContentDecoding {
  /// Returns a decoder for a response's body.
  ///
  /// - Returns: `nil` if the body has no content coding, or if the program decodes it itself.
  static func decoder(
    for head: ResponseHead, _ fields: ResponseFields, of request: URLRequest
  ) throws(URLError) -> ContentDecoding? {
    guard RequestComposer.decodes(request), fields.contains(KnownField.contentEncoding) else { return nil }
    do throws(CodingError) {
      return try decoder(for: head) { fields.values(of: "Content-Encoding") }
    } catch {
      throw URLError(error, url: request.url)
    }
  }
}

extension URLError {
  init(_ error: CodingError, url: URL?) { self = .make(.cannotDecodeRawData, "\(error)", url: url) }
}
