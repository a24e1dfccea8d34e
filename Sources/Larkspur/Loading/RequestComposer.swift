import Foundation
import LarkspurCoding
import LarkspurHTTP

/// Writes the heads of a session's requests: what the request says, then the configuration's fields, then the defaults.
final class RequestComposer: Sendable {
  /// For requests that do not say otherwise.
  private let defaults: [RequestFields.Field]
  /// Of them what says whose credentials these are: it does not go along to another origin.
  private let privateDefaults: [RequestFields.Field]
  /// What the configuration adds, in one order: of both kinds.
  private let additional: [RequestFields.Field]
  /// The defaults of requests that ask for a part.
  private let defaultsOfParts: [RequestFields.Field]

  init(additional: [AnyHashable: Any]?) {
    var defaults: [RequestFields.Field] = []
    var privateDefaults: [RequestFields.Field] = []
    for (name, value) in additional ?? [:] {
      guard let name = name.base as? String, !Self.isFraming(name) else { continue }
      let field = (name: name, value: ((value as? String) ?? "\(value)").unfolded)
      if Redirection.isPrivate(name) { privateDefaults.append(field) } else { defaults.append(field) }
    }
    // A dictionary's order changes from run to run.
    defaults.sort { $0.name < $1.name }
    privateDefaults.sort { $0.name < $1.name }
    self.additional = defaults + privateDefaults
    defaults = defaults.map {
      (name: $0.name, value: $0.name.isCaseless("Accept-Encoding") ? Self.decodable($0.value) : $0.value)
    }
    defaultsOfParts = Self.completing(defaults, by: Self.standardOfParts)
    self.defaults =
      Self.contains(defaults, "Range") ? defaultsOfParts : Self.completing(defaults, by: Self.standard)
    self.privateDefaults = privateDefaults
  }

  /// The configuration's own word for proxies.
  var proxyAuthorization: String? { privateDefaults.last { $0.name.isCaseless("Proxy-Authorization") }?.value }

  private static func completing(
    _ fields: [RequestFields.Field], by standard: [RequestFields.Field]
  ) -> [RequestFields.Field] {
    fields + standard.filter { !contains(fields, $0.name) }
  }

  private static let standard: [RequestFields.Field] = [
    (name: "Accept", value: "*/*"),
    (name: "Accept-Encoding", value: ContentCoding.offer),
    (name: "Accept-Language", value: acceptLanguage),
    (name: "User-Agent", value: userAgent),
  ]

  private static let standardOfParts = standard.map {
    $0.name == "Accept-Encoding" ? (name: $0.name, value: "identity") : $0
  }

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
  static let acceptLanguage = acceptLanguage(Locale.preferredLanguages)

  static func acceptLanguage(_ preferred: [String]) -> String {
    // Foundation on Linux says English of the whole world, `en-001`, which is no language that servers have.
    var languages: [String] = []
    for language in preferred.map({ $0.hasSuffix("-001") ? String($0.dropLast(4)) : $0 })
    where !languages.contains(language) {
      languages.append(language)
    }
    return (languages.isEmpty ? ["en"] : languages).prefix(6).enumerated().map { index, language in
      index == 0 ? language : "\(language);q=0.\(9 - index)"
    }.joined(separator: ", ")
  }

  /// What a configuration offers, but for the codings that nobody here can undo: what the session asks for it also decodes.
  static func decodable(_ offer: String) -> String {
    let known = offer.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { member in
      let name = String(member.prefix { $0 != ";" && !$0.isWhitespace })
      return !name.isEmpty && (try? ContentCodings(fieldValues: [name]))?.hasUnknown == false
    }
    let isOffer = known.contains { !$0.lowercased().hasPrefix("identity") }
    return isOffer ? known.joined(separator: ", ") : "identity"
  }

  /// Whether a response's content coding is to be undone: not if the program has asked for codings itself.
  static func decodes(_ request: URLRequest) -> Bool {
    request.own.fields?.value(of: "Accept-Encoding") == nil
  }

  /// - Parameter known: Of the target's origin. Nil: all fields are written.
  func head(
    for request: URLRequest, to target: LoadTarget, known: KnownFields?,
    body: RequestWriter.Body, extras: Extras
  ) throws(RequestError) -> RequestHead {
    let own = request.own
    let isBare = isBare(own, body, extras)
    if isBare, let head = known?.bareHead(to: target) { return head }
    let fields = own.fields?.all ?? []
    let proxy = extras.isForwarded
    let path = proxy ? "http://" + target.authority + target.path : target.path
    var writer: RequestWriter
    if let common = common(to: target, fields, extras, known) {
      writer = try RequestWriter(method: own.method, target: path, common, to: proxy ? .proxy : .origin)
    } else {
      writer = try RequestWriter(
        method: own.method, target: path, host: host(fields, target, extras), to: proxy ? .proxy : .origin)
      for field in given(fields, extras) { try writer.field(field.name, field.value) }
      for field in missing(fields, extras) { try writer.field(field.name, field.value) }
    }
    if !extras.isNone { try write(extras, beside: fields, to: &writer) }
    let head = (consume writer).finish(body: body)
    if isBare { known?.keep(head, to: target) }
    return head
  }

  /// Whether the head follows from the target alone.
  private func isBare(_ own: RequestStorage, _ body: RequestWriter.Body, _ extras: Extras) -> Bool {
    own.fields == nil && extras.isNone && body == .none && !extras.isForwarded
      && (!extras.isElsewhere || privateDefaults.isEmpty) && own.method == "GET"
  }

  private func write(
    _ extras: Extras, beside fields: [RequestFields.Field], to writer: inout RequestWriter
  ) throws(RequestError) {
    if extras.addsDefaultContentType, !Self.contains(fields, "Content-Type"), !Self.contains(defaults, "Content-Type") {
      try writer.field("Content-Type", "application/x-www-form-urlencoded")
    }
    if let cookie = extras.cookie { try writer.field("Cookie", cookie) }
    if let value = extras.authorization { try writer.field("Authorization", value) }
    if let value = extras.proxyAuthorization { try writer.field("Proxy-Authorization", value) }
    for field in extras.conditions { try writer.field(field.name, field.value) }
  }

  /// Who sets `Host` names the host, of the origin that was meant.
  private func host(_ fields: [RequestFields.Field], _ target: LoadTarget, _ extras: Extras) -> String {
    otherHost(fields, extras) ?? target.authority
  }

  private func otherHost(_ fields: [RequestFields.Field], _ extras: Extras) -> String? {
    let own = fields.last { $0.name.isCaseless("Host") }
    return (own ?? (extras.isElsewhere ? nil : privateDefaults.last { $0.name.isCaseless("Host") }))?.value
  }

  /// What a request has of its own, and of the configuration's fields what says whose credentials these are.
  private func given(_ fields: [RequestFields.Field], _ extras: Extras) -> [RequestFields.Field] {
    let own = fields.filter { !Self.isOurs($0.name, extras) }.map { (name: $0.name, value: $0.value.unfolded) }
    guard !extras.isElsewhere, !privateDefaults.isEmpty else { return own }
    return own
      + privateDefaults.filter { !Self.contains(fields, $0.name) && !Self.isOurs($0.name, extras) }
  }

  /// The defaults for what a request has not of its own.
  private func missing(_ fields: [RequestFields.Field], _ extras: Extras) -> [RequestFields.Field] {
    defaults(beside: fields).filter { !Self.contains(fields, $0.name) && !Self.contains(extras.conditions, $0.name) }
  }

  /// A part of what is coded cannot be decoded (RFC 9110 14.1.2: ranges are of the coded content). Browsers ask for no coding
  /// then.
  private func defaults(beside fields: [RequestFields.Field]) -> [RequestFields.Field] {
    Self.contains(fields, "Range") ? defaultsOfParts : defaults
  }

  /// The same as it is sent, if it is known. Nil: it has to be written.
  private func common(
    to target: LoadTarget, _ fields: [RequestFields.Field], _ extras: Extras, _ known: KnownFields?
  ) -> CommonFields? {
    guard let known, extras.conditions.isEmpty, !extras.isElsewhere || privateDefaults.isEmpty else { return nil }
    // Whether these are sent depends on the extras.
    if extras.authorization != nil, isGiven("Authorization", fields) { return nil }
    if extras.cookie != nil, isGiven("Cookie", fields) { return nil }
    if extras.proxyAuthorization != nil, isGiven("Proxy-Authorization", fields) { return nil }
    return known.common(for: fields) {
      var none = Extras()
      none.isForwarded = extras.isForwarded
      // Fields that cannot be sent fail with the request that has them.
      return try? CommonFields(host: host(fields, target, none), given(fields, none) + missing(fields, none))
    }
  }

  private func isGiven(_ name: String, _ fields: [RequestFields.Field]) -> Bool {
    Self.contains(fields, name) || Self.contains(privateDefaults, name)
  }

  /// What will be sent beside what the cache adds, for the cache to choose by: in place of an `Authorization` that is never the
  /// same twice, for whom it speaks. `Host` is there if it is not the URL's.
  func fields(of request: URLRequest, _ extras: Extras) -> [RequestFields.Field] {
    let own = request.own.fields?.all ?? []
    var fields = given(own, extras) + missing(own, extras)
    if let host = otherHost(own, extras) { fields.append((name: "Host", value: host)) }
    if let cookie = extras.cookie { fields.append((name: "Cookie", value: cookie)) }
    if let value = extras.speaker ?? extras.authorization { fields.append((name: "Authorization", value: value)) }
    return fields
  }

  /// Adds the configuration's fields that a request does not have: those that are private to the first origin only while it is
  /// the request's.
  func complete(_ request: inout URLRequest, isElsewhere: Bool) {
    for (name, value) in additional where request.value(forHTTPHeaderField: name) == nil {
      if !isElsewhere || !Redirection.isPrivate(name) { request.setValue(value, forHTTPHeaderField: name) }
    }
  }

  private static func contains(_ fields: [RequestFields.Field], _ name: String) -> Bool {
    fields.contains { $0.name.isCaseless(name) }
  }

  /// What says where the body ends: it follows from the body (RFC 9112 6).
  private static func isFraming(_ name: String) -> Bool {
    name.isCaseless("Content-Length") || name.isCaseless("Transfer-Encoding")
  }

  /// Fields that follow from the request, and those that something else has been found for.
  private static func isOurs(_ name: String, _ extras: Extras) -> Bool {
    switch name.utf8.count {
    case 4: name.isCaseless("Host")
    case 6: name.isCaseless("Cookie") && extras.cookie != nil
    case 13: name.isCaseless("Authorization") && extras.authorization != nil
    case 14, 17: isFraming(name)
    // RFC 9110 11.7.2: for the proxy, and for nobody behind it.
    case 19: name.isCaseless("Proxy-Authorization") && (extras.proxyAuthorization != nil || !extras.isForwarded)
    default: false
    }
  }
}
