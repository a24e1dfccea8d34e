import LarkspurHTTP
import LarkspurIO

/// The request that the options ask for.
package struct GetRequest: Sendable {
  package let head: RequestHead
  package let body: [UInt8]

  /// - Parameter proxy: What leads to the server, if it is not reached directly.
  package init(_ options: GetOptions, to url: RequestURL, through proxy: Proxy? = nil) throws(CommandFailure) {
    body = try Self.body(of: options.data)
    do throws(RequestError) {
      head = try Self.head(options, url, proxy, bodyBytes: options.data.isEmpty ? nil : body.count)
    } catch {
      throw CommandFailure(.usage, "the request cannot be sent: \(error)")
    }
  }

  private static func head(
    _ options: GetOptions, _ url: RequestURL, _ proxy: Proxy?, bodyBytes: Int?
  ) throws(RequestError) -> RequestHead {
    var given = options.fields
    // RFC 9112 3.2: exactly one Host, so that the last one given counts, and none given away leaves it empty.
    let host = given.last { isHost($0.name) }?.value ?? url.authority
    given.removeAll { isHost($0.name) }

    // RFC 9112 3.2.2: who makes the request for us has to know where to.
    let forwarder = proxy.flatMap { $0.forwards(toSecure: url.isSecure) ? $0 : nil }
    var writer = try RequestWriter(
      method: options.method ?? (bodyBytes == nil ? "GET" : "POST"),
      target: forwarder == nil ? url.target : "http://" + url.authority + url.target, host: host,
      to: forwarder == nil ? .origin : .proxy)
    var defaults: [GetOptions.Field] = [
      .init("User-Agent", "larkspur/\(LarkspurCommand.version)"), .init("Accept", "*/*"),
    ]
    if let credentials = url.credentials { defaults.append(.init("Authorization", "Basic " + base64(credentials))) }
    if let credentials = forwarder?.credentials {
      defaults.append(.init("Proxy-Authorization", credentials.basicAuthorization))
    }
    if bodyBytes != nil { defaults.append(.init("Content-Type", "application/x-www-form-urlencoded")) }
    for field in defaults where !given.contains(where: { $0.name.lowercased() == field.name.lowercased() }) {
      try writer.field(field.name, field.value)
    }
    for field in given where !field.value.isEmpty { try writer.field(field.name, field.value) }
    return writer.finish(body: bodyBytes.map { .length(UInt($0)) } ?? .none)
  }

  private static func isHost(_ name: String) -> Bool { name.lowercased() == "host" }

  private static func body(of data: [GetOptions.Data]) throws(CommandFailure) -> [UInt8] {
    var body: [UInt8] = []
    for (index, part) in data.enumerated() {
      if index > 0 { body.append(UInt8(ascii: "&")) }
      switch part {
      case .text(let text): body += text.utf8
      case .file(let path): body += try read(path) { () throws(Errno) in try OpenFile(reading: path) }
      case .standardInput: body += try read("standard input") { OpenFile.standardInput }
      }
    }
    return body
  }

  private static func read(_ name: String, _ open: () throws(Errno) -> OpenFile) throws(CommandFailure) -> [UInt8] {
    do throws(Errno) {
      return try open().readToEnd()
    } catch {
      throw CommandFailure(.readFailed, "could not read \(name): \(error)")
    }
  }
}
