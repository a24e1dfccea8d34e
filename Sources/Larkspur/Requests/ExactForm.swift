import Foundation
import LarkspurHTTP

/// The form of a request that is sent as its program gives it: with its own fields and no others, except those that
/// follow from the body, from cookies and from credentials. Its method keeps its case, and a GET may have a body.
///
/// The command's requests have this form.
final class ExactForm: Sendable {
  /// The request target in origin form (RFC 9112 3.2.1), or `nil` for the URL's path and query.
  let target: String?
  /// Whether the content codings of the response are decoded.
  let decodes: Bool

  init(target: String?, decodes: Bool) {
    self.target = target
    self.decodes = decodes
  }

  /// The form without the target, for another URL.
  var withoutTarget: ExactForm { target == nil ? self : ExactForm(target: nil, decodes: decodes) }
}

extension URLRequest {
  /// Creates a request that is sent with exactly these fields. `Host` is sent first, and with the URL's authority if it
  /// is missing. `Content-Length` is not sent, and gives the length of a body stream.
  ///
  /// A redirection keeps the form, but not the target.
  ///
  /// - Parameters:
  ///   - target: The request target in origin form, which is sent in place of the URL's path and query.
  ///   - decodes: Whether the content codings of the response are decoded. The fields have to ask for them.
  package init(exactly method: String, _ url: URL, target: String, fields: FieldList, decodes: Bool) {
    let storage = RequestStorage(url: url)
    storage.method = method
    storage.fields = fields
    storage.exactForm = ExactForm(target: target, decodes: decodes)
    self.init(storage)
  }
}

extension LoadTarget {
  /// Returns the path and the query that a request for this target sends.
  func path(of request: URLRequest) -> String { request.own.exactForm?.target ?? path }
}
