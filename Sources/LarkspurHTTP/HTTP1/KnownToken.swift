import LarkspurBytes

/// Field names, and members of field values, that the parser and the writer look for.
enum KnownToken {
  static var host: CaseInsensitiveToken { "host" }
  static var expect: CaseInsensitiveToken { "expect" }
  static var upgrade: CaseInsensitiveToken { "upgrade" }
  static var proxyAuthorization: CaseInsensitiveToken { "proxy-authorization" }
  static var contentLength: CaseInsensitiveToken { "content-length" }
  static var transferEncoding: CaseInsensitiveToken { "transfer-encoding" }
  static var chunked: CaseInsensitiveToken { "chunked" }
  static var connection: CaseInsensitiveToken { "connection" }
  static var close: CaseInsensitiveToken { "close" }
  static var keepAlive: CaseInsensitiveToken { "keep-alive" }
}
