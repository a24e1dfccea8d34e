import LarkspurHTTP

extension HTTPClient.Request {
  /// The request as a command line of curl, quoted for a POSIX shell, without secrets: passwords, tokens and cookies read
  /// `(redacted)`. See ``curlCommand(includesSecrets:)``.
  public var curlCommand: String { curlCommand(includesSecrets: false) }

  /// Returns the request as a command line of curl, quoted for a POSIX shell.
  ///
  /// The command has the fields of the request, and not those that a client adds. A body that a closure produces is not
  /// known: the command reads its standard input.
  ///
  /// - Parameter includesSecrets: Whether the command has user and password, `Authorization`, `Cookie` and other fields of that
  ///   kind, parameters such as `access_token`, and the same members of forms and JSON.
  public func curlCommand(includesSecrets: Bool) -> String {
    let content: CurlCommand.Body =
      switch body.content {
      case .none: .none
      case .bytes(let bytes): .bytes(bytes)
      case .file(let path): .file(path)
      case .produced: .unknown
      }
    return CurlCommand(method: method, url: url, fields: fields, body: content).text(includesSecrets: includesSecrets)
  }
}
