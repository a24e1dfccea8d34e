import LarkspurBytes
import LarkspurHTTP

/// The request that the options ask for.
package struct GetRequest: Sendable {
  /// The content, or nothing if `stream` is the content.
  package let body: [UInt8]
  /// The content of `-d` if it is too large for the memory.
  let stream: FormBody?
  package let method: String
  /// The value of `Host` that `-H` gives, or `nil`. RFC 9112, section 3.2 requires exactly one `Host`: the last `-H`
  /// counts, and an empty one leaves the field empty.
  package let host: String?
  /// The fields of the head, except those that follow from the URL, the body and the proxy.
  package let fields: FieldList

  /// Fails if a part of the head cannot be sent.
  ///
  /// - Parameters:
  ///   - proxy: The proxy on the way to the server, or `nil` if the server is reached directly.
  ///   - streams: Whether the request's content may be a stream.
  package init(
    _ options: GetOptions, to url: RequestURL, through proxy: Proxy? = nil, streams: Bool = false
  ) throws(CommandFailure) {
    stream = streams ? try FormBody(options.data, separator: options.separator) : nil
    body = stream == nil ? try options.allData() : []
    method = options.method ?? (options.data.isEmpty && options.session.parts.isEmpty ? "GET" : "POST")
    host = options.fields.values(named: "Host").last
    fields = Self.fields(options, url)
    do throws(RequestError) {
      try check(for: url, proxy)
    } catch {
      throw CommandFailure(.usage, "the request cannot be sent: \(error)")
    }
  }

  /// Writes the head as a trial: the errors of `RequestWriter` name what is wrong in the words of the command line.
  private func check(for url: RequestURL, _ proxy: Proxy?) throws(RequestError) {
    // RFC 9112, section 3.2.2: a proxy that forwards the request gets the whole URL.
    let isForwarded = proxy?.forwards(toSecure: url.isSecure) == true
    var writer = try RequestWriter(
      method: method, target: isForwarded ? "http://" + url.authority + url.target : url.target,
      host: host ?? url.authority, to: isForwarded ? .proxy : .origin)
    for field in fields { try writer.field(field.name, field.value) }
  }

  private static func fields(_ options: GetOptions, _ url: RequestURL) -> FieldList {
    var defaults: FieldList = [
      .init("User-Agent", options.userAgent ?? "larkspur/\(LarkspurCommand.version)"),
      .init("Accept", options.session.isJSON ? "application/json" : "*/*"),
    ]
    // As in curl, a blank stands for an empty value.
    if options.userAgent == "" { defaults.removeFirst() }
    if let referer = options.referer { defaults.append(.init("Referer", referer)) }
    let cookies = options.session.cookies
    if !cookies.isEmpty { defaults.append(.init("Cookie", cookies.joined(separator: "; "))) }
    if let token = options.session.bearerToken {
      defaults.append(.init("Authorization", "Bearer \(token)"))
    } else if !options.session.usesDigest,
      let credentials = options.session.credentials ?? url.credentials
    {
      defaults.append(.init("Authorization", credentials.basicAuthorization))
    }
    if !options.data.isEmpty {
      let type = options.session.isJSON ? "application/json" : "application/x-www-form-urlencoded"
      defaults.append(.init("Content-Type", type))
    }
    var fields = defaults.filter { !options.fields.contains(named: $0.name) }
    for field in options.fields where !field.name.equalsIgnoringCase("Host") && !field.value.isEmpty {
      // RFC 6265bis, section 5.8.3: a request has one `Cookie`, in which semicolons separate the cookies.
      if field.name.equalsIgnoringCase("Cookie"), let cookies = fields.firstValue(named: "Cookie") {
        fields.replace("Cookie", with: "\(cookies); \(field.value)")
      } else {
        fields.append(field)
      }
    }
    return fields
  }

  /// Returns the value of Basic authorization. The command's session part does not see the members of `UserInfo`.
  static func authorization(_ credentials: UserInfo) -> String { credentials.basicAuthorization }
}
