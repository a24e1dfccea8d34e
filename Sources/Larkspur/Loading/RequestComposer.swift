import Foundation
import LarkspurHTTP

/// Writes the heads of a session's requests: what the request says, then the configuration's fields, then the defaults.
struct RequestComposer: Sendable {
  /// For requests that do not say otherwise.
  private let defaults: [(name: String, value: String)]
  /// The same, as they are sent: for requests that set none of them.
  private let rendered: RenderedFields?
  /// Of them what says whose credentials these are: it does not go along to another origin.
  private let privateDefaults: [(name: String, value: String)]

  /// What is written for one request beside its own fields.
  struct Extras {
    var cookie: String?
    var authorization: String?
    var proxyAuthorization: String?
    /// Conditions that the cache adds.
    var conditions: [(name: String, value: String)] = []
    /// A redirection has left the origin that the program had meant.
    var isElsewhere = false
    var addsDefaultContentType = false

    var isNone: Bool {
      cookie == nil && authorization == nil && proxyAuthorization == nil && conditions.isEmpty
        && !addsDefaultContentType
    }
  }

  init(additional: [AnyHashable: Any]?) {
    var defaults: [(name: String, value: String)] = []
    var privateDefaults: [(name: String, value: String)] = []
    for (name, value) in additional ?? [:] {
      guard let name = name.base as? String else { continue }
      let field = (name: name, value: (value as? String) ?? "\(value)")
      if Redirection.isPrivate(name) { privateDefaults.append(field) } else { defaults.append(field) }
    }
    // A dictionary's order changes from run to run.
    defaults.sort { $0.name < $1.name }
    privateDefaults.sort { $0.name < $1.name }
    for field in Self.standard where !defaults.contains(where: { $0.name.isCaseless(field.name) }) {
      defaults.append(field)
    }
    self.defaults = defaults
    // Fields that cannot be sent fail with the request that has them.
    rendered = try? RenderedFields(defaults)
    self.privateDefaults = privateDefaults
  }

  private static let standard: [(name: String, value: String)] = [
    (name: "Accept", value: "*/*"),
    (name: "Accept-Encoding", value: "gzip, deflate"),
    (name: "Accept-Language", value: acceptLanguage),
    (name: "User-Agent", value: userAgent),
  ]

  /// The program's name, and ours.
  static let userAgent: String = {
    let name = ProcessInfo.processInfo.processName.unicodeScalars.filter {
      $0.isASCII
        && ($0.properties.isAlphabetic || $0.properties.numericType != nil || "-._".unicodeScalars.contains($0))
    }
    let program = String(String.UnicodeScalarView(name))
    return "\(program.isEmpty ? "program" : program) Larkspur"
  }()

  /// The user's languages, the best one first (RFC 9110 12.5.4).
  static let acceptLanguage: String = {
    let languages = Locale.preferredLanguages.isEmpty ? ["en"] : Locale.preferredLanguages
    return languages.prefix(6).enumerated().map { index, language in
      index == 0 ? language : "\(language);q=0.\(9 - index)"
    }.joined(separator: ", ")
  }()

  /// Whether a response's content coding is to be undone: not if the program has asked for codings itself.
  static func decodes(_ request: URLRequest) -> Bool {
    request.own.fields?.value(of: "Accept-Encoding") == nil
  }

  /// What requests to a host have in common that set no fields themselves. Nil: they have to be written one by one.
  func common(to target: LoadTarget) -> CommonFields? {
    guard let rendered, privateDefaults.isEmpty else { return nil }
    return try? CommonFields(host: target.authority, rendered)
  }

  /// - Parameters:
  ///   - proxy: Whether the request goes to a proxy in place of the host.
  ///   - common: See `common(to:)`.
  func head(
    for request: URLRequest, to target: LoadTarget, through proxy: Bool, common: CommonFields?,
    body: RequestWriter.Body, extras: Extras
  ) throws(RequestError) -> RequestHead {
    let own = request.own
    if let common, own.fields == nil, extras.isNone, !proxy {
      return try RequestWriter(method: own.method, target: target.path, common).finish(body: body)
    }
    let fields = own.fields?.all ?? []
    var host = target.authority
    for field in fields where field.name.isCaseless("Host") { host = field.value }
    var writer = try RequestWriter(
      method: own.method, target: proxy ? "http://" + target.authority + target.path : target.path, host: host,
      to: proxy ? .proxy : .origin)
    for field in fields where !Self.isOurs(field.name, extras) { try writer.field(field.name, field.value) }
    if !extras.isElsewhere {
      for field in privateDefaults where !Self.contains(fields, field.name) && !Self.isOurs(field.name, extras) {
        try writer.field(field.name, field.value)
      }
    }
    let set = extras.conditions.isEmpty ? fields : fields + extras.conditions
    if let rendered, !set.contains(where: { field in defaults.contains { $0.name.isCaseless(field.name) } }) {
      writer.fields(rendered)
    } else {
      for field in defaults where !Self.contains(set, field.name) { try writer.field(field.name, field.value) }
    }
    if extras.addsDefaultContentType, !Self.contains(fields, "Content-Type"), !Self.contains(defaults, "Content-Type") {
      try writer.field("Content-Type", "application/x-www-form-urlencoded")
    }
    if let cookie = extras.cookie { try writer.field("Cookie", cookie) }
    if let value = extras.authorization { try writer.field("Authorization", value) }
    if let value = extras.proxyAuthorization { try writer.field("Proxy-Authorization", value) }
    for field in extras.conditions { try writer.field(field.name, field.value) }
    return writer.finish(body: body)
  }

  /// What will be sent beside what the cache adds, for the cache to choose by.
  func fields(of request: URLRequest, _ extras: Extras) -> [(name: String, value: String)] {
    var fields = request.own.fields?.all ?? []
    for field in defaults where !Self.contains(fields, field.name) { fields.append(field) }
    if let cookie = extras.cookie { fields.append((name: "Cookie", value: cookie)) }
    if let value = extras.authorization { fields.append((name: "Authorization", value: value)) }
    return fields
  }

  private static func contains(_ fields: [(name: String, value: String)], _ name: String) -> Bool {
    fields.contains { $0.name.isCaseless(name) }
  }

  /// Fields that follow from the request, and those that something else has been found for.
  private static func isOurs(_ name: String, _ extras: Extras) -> Bool {
    switch name.utf8.count {
    case 4: name.isCaseless("Host")
    case 6: name.isCaseless("Cookie") && extras.cookie != nil
    case 13: name.isCaseless("Authorization") && extras.authorization != nil
    case 14: name.isCaseless("Content-Length")
    case 17: name.isCaseless("Transfer-Encoding")
    // RFC 9110 11.7.2: for the proxy, and for nobody behind it.
    case 19: name.isCaseless("Proxy-Authorization")
    default: false
    }
  }
}
