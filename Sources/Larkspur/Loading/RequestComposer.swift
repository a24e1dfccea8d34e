import Foundation
import LarkspurHTTP
import Synchronization

/// Writes the heads of a session's requests: what the request says, then the configuration's fields, then the defaults.
final class RequestComposer: Sendable {
  /// For requests that do not say otherwise.
  private let defaults: [RequestFields.Field]
  /// The same, as they are sent: for requests that set none of them.
  private let rendered: RenderedFields?
  /// Of them what says whose credentials these are: it does not go along to another origin.
  private let privateDefaults: [RequestFields.Field]
  private let latest = LatestFields()

  /// What is written for one request beside its own fields.
  struct Extras {
    var cookie: String?
    var authorization: String?
    var proxyAuthorization: String?
    /// Conditions that the cache adds.
    var conditions: [RequestFields.Field] = []
    /// A redirection has left the origin that the program had meant.
    var isElsewhere = false
    var addsDefaultContentType = false

    var isNone: Bool {
      cookie == nil && authorization == nil && proxyAuthorization == nil && conditions.isEmpty
        && !addsDefaultContentType
    }
  }

  init(additional: [AnyHashable: Any]?) {
    var defaults: [RequestFields.Field] = []
    var privateDefaults: [RequestFields.Field] = []
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

  private static let standard: [RequestFields.Field] = [
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
    if let known = known(fields, extras) {
      writer.fields(known)
    } else {
      for field in given(fields, extras) { try writer.field(field.name, field.value) }
      let missing = missing(fields, extras)
      if let rendered, missing.count == defaults.count {
        writer.fields(rendered)
      } else {
        for field in missing { try writer.field(field.name, field.value) }
      }
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

  /// What a request has of its own, and of the configuration's fields what says whose credentials these are.
  private func given(_ fields: [RequestFields.Field], _ extras: Extras) -> [RequestFields.Field] {
    let own = fields.filter { !Self.isOurs($0.name, extras) }
    guard !extras.isElsewhere, !privateDefaults.isEmpty else { return own }
    return own
      + privateDefaults.filter { !Self.contains(fields, $0.name) && !Self.isOurs($0.name, extras) }
  }

  /// The defaults for what a request has not of its own.
  private func missing(_ fields: [RequestFields.Field], _ extras: Extras) -> [RequestFields.Field] {
    defaults.filter { !Self.contains(fields, $0.name) && !Self.contains(extras.conditions, $0.name) }
  }

  /// The same as it is sent, if it is known. Nil: it has to be written.
  private func known(_ fields: [RequestFields.Field], _ extras: Extras) -> RenderedFields? {
    guard !extras.isElsewhere, extras.conditions.isEmpty else { return nil }
    if fields.isEmpty, privateDefaults.isEmpty { return rendered }
    // Whether these are sent depends on the extras.
    guard extras.authorization == nil,
      extras.cookie == nil || !Self.contains(fields, "Cookie") && !Self.contains(privateDefaults, "Cookie")
    else { return nil }
    switch latest.look(for: fields) {
    case .new: return nil
    case .known(let rendered): return rendered
    case .seen:
      // Fields that cannot be sent fail with the request that has them.
      guard let rendered = try? RenderedFields(given(fields, extras) + missing(fields, extras)) else { return nil }
      latest.keep(rendered, for: fields)
      return rendered
    }
  }

  /// What will be sent beside what the cache adds, for the cache to choose by.
  func fields(of request: URLRequest, _ extras: Extras) -> [RequestFields.Field] {
    var fields = request.own.fields?.all ?? []
    for field in defaults where !Self.contains(fields, field.name) { fields.append(field) }
    if let cookie = extras.cookie { fields.append((name: "Cookie", value: cookie)) }
    if let value = extras.authorization { fields.append((name: "Authorization", value: value)) }
    return fields
  }

  private static func contains(_ fields: [RequestFields.Field], _ name: String) -> Bool {
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

/// The fields of the latest request, as they are sent: most programs say the same in all of their requests.
private final class LatestFields: Sendable {
  enum Find {
    /// The request before had other fields.
    case new
    /// The request before had the same ones: from the second on it is worth the work to write them once for all.
    case seen
    case known(RenderedFields)
  }

  private let entry = Mutex<(fields: [RequestFields.Field], rendered: RenderedFields?)>(([], nil))

  func look(for fields: [RequestFields.Field]) -> Find {
    entry.withLock { entry in
      if Self.areEqual(entry.fields, fields) { return entry.rendered.map { .known($0) } ?? .seen }
      entry = (fields, nil)
      return .new
    }
  }

  func keep(_ rendered: RenderedFields, for fields: [RequestFields.Field]) {
    entry.withLock { $0 = (fields, rendered) }
  }

  private static func areEqual(_ one: [RequestFields.Field], _ other: [RequestFields.Field]) -> Bool {
    guard one.count == other.count else { return false }
    for index in one.indices where one[index].value != other[index].value || one[index].name != other[index].name {
      return false
    }
    return true
  }
}
