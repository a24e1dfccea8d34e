import Foundation
import LarkspurHTTP

extension URLRequest {
  /// The request as a command line of curl, quoted for a POSIX shell, without secrets: passwords, tokens and cookies read
  /// `(redacted)`. See ``curlCommand(includesSecrets:)``. Darwin has no such property.
  public var curlCommand: String { curlCommand(includesSecrets: false) }

  /// Returns the request as a command line of curl, quoted for a POSIX shell.
  ///
  /// The command has the fields of the request, and not those that a session adds. A body that is no text goes to curl by
  /// `printf`. A body stream is not read: the command reads its standard input.
  ///
  /// - Parameter includesSecrets: Whether the command has user and password, `Authorization`, `Cookie` and other fields of that
  ///   kind, parameters such as `access_token`, and the same members of forms and JSON.
  public func curlCommand(includesSecrets: Bool) -> String {
    let body: CurlCommand.Body =
      if let data = httpBody { .bytes(Array(data)) } else if httpBodyStream != nil { .unknown } else { .none }
    return CurlCommand(
      method: httpMethod ?? "GET", url: url?.absoluteString ?? "", fields: fieldsForCurl, body: body
    ).text(includesSecrets: includesSecrets)
  }

  private var fieldsForCurl: FieldList {
    (allHTTPHeaderFields ?? [:]).sorted { $0.key.lowercased() < $1.key.lowercased() }.map { Field($0.key, $0.value) }
  }
}
