import Foundation
import LarkspurBytes
import LarkspurCoding
import LarkspurHTTP

/// Writes the heads of a session's requests: first the request's fields, then the configuration's, then the defaults.
final class RequestComposer: Sendable {
  /// Fields for requests that do not set them: the configuration's, and the standard ones.
  private let defaults: FieldList
  /// The configuration's fields that carry credentials or are otherwise meant for one origin
  /// (`RedirectPolicy.isPrivate`). Not sent to another origin.
  private let privateDefaults: FieldList
  /// All of the configuration's fields, of both kinds.
  private let additional: FieldList
  /// Whether any of the configuration's fields concerns a cache.
  let concernsCache: Bool
  /// The defaults for requests that ask for a part of a resource.
  private let defaultsOfParts: FieldList

  init(additional: [AnyHashable: Any]?) {
    var defaults: FieldList = []
    var privateDefaults: FieldList = []
    for (name, value) in additional ?? [:] {
      guard let name = name.base as? String, !Self.isFraming(name) else { continue }
      let field = Field(name, ((value as? String) ?? "\(value)").unfolded)
      if RedirectPolicy.isPrivate(name) { privateDefaults.append(field) } else { defaults.append(field) }
    }
    // A dictionary's order changes from run to run.
    defaults.sort { $0.name < $1.name }
    privateDefaults.sort { $0.name < $1.name }
    self.additional = defaults + privateDefaults
    concernsCache = self.additional.concernCache
    defaults = defaults.map {
      Field($0.name, $0.name.equalsIgnoringCase("Accept-Encoding") ? Self.decodable($0.value) : $0.value)
    }
    defaultsOfParts = Self.completing(defaults, by: Self.standardOfParts)
    self.defaults =
      defaults.contains(named: "Range") ? defaultsOfParts : Self.completing(defaults, by: Self.standard)
    self.privateDefaults = privateDefaults
  }

  /// The `User-Agent` of requests for tunnels: the configuration's, or the standard one.
  var userAgent: String { additional.last { $0.name.equalsIgnoringCase("User-Agent") }?.value ?? Self.userAgent }

  /// The configuration's `Proxy-Authorization`.
  var proxyAuthorization: String? { privateDefaults.last { $0.name.equalsIgnoringCase("Proxy-Authorization") }?.value }

  private static func completing(_ fields: FieldList, by standard: FieldList) -> FieldList {
    fields + standard.filter { !fields.contains(named: $0.name) }
  }

  /// Whether a session adds a field of this name to each request that has none.
  static func isStandard(_ name: String) -> Bool { standard.contains(named: name) }

  private static let standard: FieldList =
    [Field("Accept", "*/*"), Field("Accept-Encoding", ContentCoding.offer)] + programFields

  /// The standard fields that depend on the program and its user.
  static let programFields: FieldList = [
    Field("Accept-Language", acceptLanguage), Field("User-Agent", userAgent),
  ]

  private static let standardOfParts = standard.map {
    $0.name == "Accept-Encoding" ? Field($0.name, "identity") : $0
  }

  /// The program's name, followed by `Larkspur`.
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
    // Foundation on Linux reports `en-001`, English of the world, for which servers have no content.
    var languages: [String] = []
    for language in preferred.map({ $0.hasSuffix("-001") ? String($0.dropLast(4)) : $0 })
    where !languages.contains(language) {
      languages.append(language)
    }
    return (languages.isEmpty ? ["en"] : languages).prefix(6).enumerated().map { index, language in
      index == 0 ? language : "\(language);q=0.\(9 - index)"
    }.joined(separator: ", ")
  }

  /// Returns the codings of a configuration's `Accept-Encoding` that Larkspur can decode: a session decodes each
  /// coding that it offers.
  static func decodable(_ offer: String) -> String {
    let known = offer.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { member in
      let name = String(member.prefix { $0 != ";" && !$0.isWhitespace })
      return !name.isEmpty && (try? ContentCodings(fieldValues: [name]))?.hasUnknown == false
    }
    let isOffer = known.contains { !$0.lowercased().hasPrefix("identity") }
    return isOffer ? known.joined(separator: ", ") : "identity"
  }

  /// Whether a response's content coding is decoded: not if the request has an `Accept-Encoding` of its own, unless its
  /// exact form says so.
  static func decodes(_ request: URLRequest) -> Bool {
    request.own.exactForm?.decodes ?? (request.own.fields?.firstValue(named: "Accept-Encoding") == nil)
  }

  /// Writes the head of a request.
  ///
  /// - Parameter cache: The serialized fields for the target's origin. If `nil`, all fields are written.
  func head(
    for request: URLRequest, to target: LoadTarget, cache: HeadCache?,
    body: RequestWriter.Body, additions: AdditionalFields
  ) throws(RequestError) -> RequestHead {
    let own = request.own
    let isBare = isBare(own, body, additions)
    if isBare, let head = cache?.bareHead(to: target) { return head }
    let fields = own.fields ?? []
    let proxy = additions.isForwarded
    let ownPath = target.path(of: request)
    let path = proxy ? "http://" + target.authority + ownPath : ownPath
    var writer: RequestWriter
    if let serialized = serializedFields(to: target, own, additions, cache) {
      writer = try RequestWriter(method: own.method, target: path, serialized, to: proxy ? .proxy : .origin)
    } else {
      writer = try RequestWriter(
        method: own.method, target: path, host: host(own, target, additions), to: proxy ? .proxy : .origin)
      for field in given(own, additions) { try writer.field(field.name, field.value) }
      for field in missing(own, additions) { try writer.field(field.name, field.value) }
    }
    if !additions.isNone { try write(additions, beside: fields, to: &writer) }
    let head = (consume writer).finish(body: body)
    if isBare { cache?.store(head, to: target) }
    return head
  }

  /// Whether the head depends on nothing but the target.
  private func isBare(_ own: RequestStorage, _ body: RequestWriter.Body, _ additions: AdditionalFields) -> Bool {
    own.fields == nil && own.exactForm == nil && additions.isNone && body == .none && !additions.isForwarded
      && (!additions.hasLeftOrigin || privateDefaults.isEmpty) && own.method == "GET"
  }

  private func write(
    _ additions: AdditionalFields, beside fields: FieldList, to writer: inout RequestWriter
  ) throws(RequestError) {
    if additions.addsDefaultContentType, !fields.contains(named: "Content-Type"),
      !additions.replacements.contains(named: "Content-Type"),
      !defaults.contains(named: "Content-Type")
    {
      try writer.field("Content-Type", "application/x-www-form-urlencoded")
    }
    if let cookie = additions.cookie { try writer.field("Cookie", cookie) }
    if let value = additions.authorization { try writer.field("Authorization", value) }
    if let value = additions.proxyAuthorization { try writer.field("Proxy-Authorization", value) }
    for field in additions.conditions { try writer.field(field.name, field.value) }
    for field in additions.replacements { try writer.field(field.name, field.value) }
  }

  /// The value of `Host`. A `Host` field of the request or of the configuration replaces the URL's authority; the
  /// configuration's only for the origin that the program named.
  private func host(_ request: RequestStorage, _ target: LoadTarget, _ additions: AdditionalFields) -> String {
    otherHost(request, additions) ?? target.authority
  }

  private func otherHost(_ request: RequestStorage, _ additions: AdditionalFields) -> String? {
    if let own = request.fields?.last(where: { $0.name.equalsIgnoringCase("Host") }) { return own.value }
    guard !additions.hasLeftOrigin, request.exactForm == nil else { return nil }
    return privateDefaults.last { $0.name.equalsIgnoringCase("Host") }?.value
  }

  /// Returns the request's own fields, and the configuration's private fields unless the request has left its origin.
  private func given(_ request: RequestStorage, _ additions: AdditionalFields) -> FieldList {
    let fields = request.fields ?? []
    let own = fields.filter { !Self.isOurs($0.name, additions) }.map { Field($0.name, $0.value.unfolded) }
    guard !additions.hasLeftOrigin, !privateDefaults.isEmpty, request.exactForm == nil else { return own }
    return own
      + privateDefaults.filter { !fields.contains(named: $0.name) && !Self.isOurs($0.name, additions) }
  }

  /// Returns the defaults for fields that the request does not have. A request of exact form gets none.
  private func missing(_ request: RequestStorage, _ additions: AdditionalFields) -> FieldList {
    guard request.exactForm == nil else { return [] }
    let fields = request.fields ?? []
    return defaults(beside: fields).filter {
      !fields.contains(named: $0.name) && !additions.conditions.contains(named: $0.name)
        && !additions.replacements.contains(named: $0.name)
    }
  }

  /// The defaults for a request. A part of encoded content cannot be decoded, because ranges count encoded bytes (RFC
  /// 9110 14.1.2). A request for a part therefore asks for no coding, as in browsers.
  private func defaults(beside fields: FieldList) -> FieldList {
    fields.contains(named: "Range") ? defaultsOfParts : defaults
  }

  /// Returns the fields of `given` and `missing` as they are sent, or `nil` if they have to be written for this
  /// request.
  private func serializedFields(
    to target: LoadTarget, _ request: RequestStorage, _ additions: AdditionalFields, _ cache: HeadCache?
  ) -> SerializedFields? {
    guard let cache, request.exactForm == nil, additions.conditions.isEmpty, additions.replacements.isEmpty,
      !additions.hasLeftOrigin || privateDefaults.isEmpty
    else { return nil }
    let fields = request.fields ?? []
    // Whether these are sent depends on the additions.
    if additions.authorization != nil, isSet("Authorization", fields) { return nil }
    if additions.cookie != nil, isSet("Cookie", fields) { return nil }
    if additions.proxyAuthorization != nil, isSet("Proxy-Authorization", fields) { return nil }
    return cache.serializedFields(for: fields) {
      var none = AdditionalFields()
      none.isForwarded = additions.isForwarded
      // Fields that cannot be sent fail with the request that has them.
      return try? SerializedFields(host: host(request, target, none), given(request, none) + missing(request, none))
    }
  }

  private func isSet(_ name: String, _ fields: FieldList) -> Bool {
    fields.contains(named: name) || privateDefaults.contains(named: name)
  }

  /// Returns the fields that are sent, without those that the cache adds: the cache chooses a stored response by them.
  /// An `Authorization` that differs in each request is replaced by the identity that it
  /// authorizes (`AdditionalFields.authorizationIdentity`).
  /// `Host` is included if it differs from the URL's.
  func fields(of request: URLRequest, _ additions: AdditionalFields) -> FieldList {
    var fields = given(request.own, additions) + missing(request.own, additions)
    if let host = otherHost(request.own, additions) { fields.append(Field("Host", host)) }
    if let cookie = additions.cookie { fields.append(Field("Cookie", cookie)) }
    if let value = additions.authorizationIdentity ?? additions.authorization {
      fields.append(Field("Authorization", value))
    }
    return fields
  }

  /// Adds the configuration's fields that a request does not have. Fields that are private to one origin are added only
  /// if the request has not left that origin. A request of exact form gets none.
  func complete(_ request: inout URLRequest, hasLeftOrigin: Bool) {
    guard request.own.exactForm == nil else { return }
    for field in additional where request.value(forHTTPHeaderField: field.name) == nil {
      guard !hasLeftOrigin || !RedirectPolicy.isPrivate(field.name) else { continue }
      request.setValue(field.value, forHTTPHeaderField: field.name)
    }
  }

  /// Whether the program itself has set a field of resumable uploads (draft-ietf-httpbis-resumable-upload), in the
  /// request or for the session.
  func hasUploadFields(_ request: URLRequest) -> Bool {
    let names = [
      "Upload-Draft-Interop-Version", "Upload-Complete", "Upload-Incomplete", "Upload-Offset", "Upload-Length",
    ]
    let fields = request.own.fields ?? []
    return names.contains { fields.contains(named: $0) || additional.contains(named: $0) }
  }

  /// Whether a field delimits the body. Such fields follow from the body (RFC 9112 6), and are not taken from the
  /// program.
  private static func isFraming(_ name: String) -> Bool {
    name.equalsIgnoringCase("Content-Length") || name.equalsIgnoringCase("Transfer-Encoding")
  }

  /// Whether a field of the program's is left out: it follows from the request, `additions` has a value for it, or it
  /// is not for the recipient.
  private static func isOurs(_ name: String, _ additions: AdditionalFields) -> Bool {
    if additions.replacements.contains(named: name) { return true }
    return switch name.utf8.count {
    case 4: name.equalsIgnoringCase("Host")
    case 6: name.equalsIgnoringCase("Cookie") && additions.cookie != nil
    case 13: name.equalsIgnoringCase("Authorization") && additions.authorization != nil
    case 14, 17: isFraming(name)
    // RFC 9110 11.7.2: the field is for the proxy only, not for a server behind it.
    case 19:
      name.equalsIgnoringCase("Proxy-Authorization") && (additions.proxyAuthorization != nil || !additions.isForwarded)
    default: false
    }
  }
}
