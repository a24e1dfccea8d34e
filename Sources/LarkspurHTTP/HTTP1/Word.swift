import LarkspurBytes

/// Field names, and members of field values, that the parser and the writer look for.
enum Word {
  static var host: CaselessWord { "host" }
  static var expect: CaselessWord { "expect" }
  static var upgrade: CaselessWord { "upgrade" }
  static var proxyAuthorization: CaselessWord { "proxy-authorization" }
  static var contentLength: CaselessWord { "content-length" }
  static var transferEncoding: CaselessWord { "transfer-encoding" }
  static var chunked: CaselessWord { "chunked" }
  static var connection: CaselessWord { "connection" }
  static var close: CaselessWord { "close" }
  static var keepAlive: CaselessWord { "keep-alive" }
}
