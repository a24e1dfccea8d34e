import LarkspurBytes
import LarkspurCoding
import LarkspurHTTP

/// Writes the heads of a client's requests: first the request's fields, then the configuration's, then the defaults.
package final class RequestComposer: Sendable {
  /// The parts of a request that its head is written from.
  package struct Form {
    package var method: String
    /// The path and the query that are sent. Never empty.
    package var path: String
    /// `nil` if the program has set no fields.
    package var fields: FieldList?
    /// Whether the request gets no fields but its own. See `complete`.
    package var isExact: Bool

    package init(method: String, path: String, fields: FieldList?, isExact: Bool = false) {
      self.method = method
      self.path = path
      self.fields = fields
      self.isExact = isExact
    }
  }

  /// Fields for requests that do not set them: the configuration's, and the standard ones.
  private let defaults: FieldList
  /// The configuration's fields that carry credentials or are otherwise meant for one origin
  /// (`RedirectPolicy.isPrivate`). Not sent to another origin.
  private let privateDefaults: FieldList
  /// All of the configuration's fields.
  private let additional: FieldList
  /// Whether any of the configuration's fields concerns a cache.
  package let concernsCache: Bool
  /// Whether the configuration's fields name a content coding, which the program's bodies then have already.
  package let namesCoding: Bool
  /// The defaults for requests that ask for a part of a resource.
  private let defaultsOfParts: FieldList

  /// - Parameters:
  ///   - additional: The configuration's fields, in the order in which they are sent.
  ///   - program: The standard fields that depend on the program and its user.
  package init(additional fields: FieldList, program: FieldList) {
    let sent = fields.filter { !Self.isFraming($0.name) }.map { Field($0.name, $0.value.unfolded) }
    var defaults = sent.filter { !RedirectPolicy.isPrivate($0.name) }
    let privateDefaults = sent.filter { RedirectPolicy.isPrivate($0.name) }
    let standard = Self.standard + program
    self.additional = defaults + privateDefaults
    concernsCache = self.additional.concernCache
    namesCoding = self.additional.contains(named: "Content-Encoding")
    defaults = defaults.map {
      Field($0.name, $0.name.equalsIgnoringCase("Accept-Encoding") ? Self.decodable($0.value) : $0.value)
    }
    defaultsOfParts = Self.completing(defaults, by: standard.map(Self.ofPart))
    self.defaults =
      defaults.contains(named: "Range") ? defaultsOfParts : Self.completing(defaults, by: standard)
    self.privateDefaults = privateDefaults
  }

  /// The `User-Agent` of requests for tunnels: the configuration's, or the standard one.
  package var tunnelUserAgent: String? { defaults.last { $0.name.equalsIgnoringCase("User-Agent") }?.value }

  /// The configuration's `Proxy-Authorization`.
  package var proxyAuthorization: String? {
    privateDefaults.last { $0.name.equalsIgnoringCase("Proxy-Authorization") }?.value
  }

  private static func completing(_ fields: FieldList, by standard: FieldList) -> FieldList {
    fields + standard.filter { !fields.contains(named: $0.name) }
  }

  /// The default fields: each is added to requests without a field of its name.
  package static let standard: FieldList = [Field("Accept", "*/*"), Field("Accept-Encoding", ContentCoding.offer)]

  /// The standard `User-Agent`: the program's name, followed by `Larkspur`.
  ///
  /// - Parameter path: The program's name, or its path.
  package static func userAgent(ofProgram path: String) -> String {
    let name = path.utf8.split(separator: UInt8(ascii: "/")).last ?? ""[...].utf8
    let kept = name.filter { byte in
      "-._".utf8.contains(byte) || (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
    }
    return (kept.isEmpty ? "program" : String(decoding: kept, as: UTF8.self)) + " Larkspur"
  }

  private static func ofPart(_ field: Field) -> Field {
    field.name == "Accept-Encoding" ? Field(field.name, "identity") : field
  }

  /// Returns the codings of a configuration's `Accept-Encoding` that Larkspur can decode: a session decodes each
  /// coding that it offers.
  package static func decodable(_ offer: String) -> String {
    let known = ListMembers.split(offer).filter { member in
      let name = String(member.prefix { $0 != ";" && !$0.isWhitespace })
      return !name.isEmpty && (try? ContentCodings(fieldValues: [name]))?.hasUnknown == false
    }
    let isOffer = known.contains { !$0.lowercased().hasPrefix("identity") }
    return isOffer ? known.joined(separator: ", ") : "identity"
  }

  /// Writes the head of a request.
  ///
  /// - Parameter cache: The serialized fields for the target's origin. If `nil`, all fields are written.
  package func head(
    for own: Form, to target: LoadTarget, cache: HeadCache?,
    body: RequestWriter.Body, additions: AdditionalFields
  ) throws(RequestError) -> RequestHead {
    let isBare = isBare(own, body, additions)
    if isBare, let head = cache?.bareHead(to: target) { return head }
    let fields = own.fields ?? []
    let proxy = additions.isForwarded
    let path = proxy ? "http://" + target.authority + own.path : own.path
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
  private func isBare(_ own: Form, _ body: RequestWriter.Body, _ additions: AdditionalFields) -> Bool {
    own.fields == nil && !own.isExact && additions.isNone && body == .none && !additions.isForwarded
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
  private func host(_ request: Form, _ target: LoadTarget, _ additions: AdditionalFields) -> String {
    otherHost(request, additions) ?? target.authority
  }

  private func otherHost(_ request: Form, _ additions: AdditionalFields) -> String? {
    if let own = request.fields?.last(where: { $0.name.equalsIgnoringCase("Host") }) { return own.value }
    guard !additions.hasLeftOrigin, !request.isExact else { return nil }
    return privateDefaults.last { $0.name.equalsIgnoringCase("Host") }?.value
  }

  /// Returns the request's own fields, and the configuration's private fields unless the request has left its origin.
  private func given(_ request: Form, _ additions: AdditionalFields) -> FieldList {
    let fields = request.fields ?? []
    let own = fields.filter { !Self.isOurs($0.name, additions) }.map { Field($0.name, $0.value.unfolded) }
    guard !additions.hasLeftOrigin, !privateDefaults.isEmpty, !request.isExact else { return own }
    return own
      + privateDefaults.filter { !fields.contains(named: $0.name) && !Self.isOurs($0.name, additions) }
  }

  /// Returns the defaults for fields that the request does not have. A request of exact form gets no defaults.
  private func missing(_ request: Form, _ additions: AdditionalFields) -> FieldList {
    guard !request.isExact else { return [] }
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
    to target: LoadTarget, _ request: Form, _ additions: AdditionalFields, _ cache: HeadCache?
  ) -> SerializedFields? {
    guard let cache, !request.isExact, additions.conditions.isEmpty, additions.replacements.isEmpty,
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
  package func fields(of request: Form, _ additions: AdditionalFields) -> FieldList {
    var fields = given(request, additions) + missing(request, additions)
    if let host = otherHost(request, additions) { fields.append(Field("Host", host)) }
    if let cookie = additions.cookie { fields.append(Field("Cookie", cookie)) }
    if let value = additions.authorizationIdentity ?? additions.authorization {
      fields.append(Field("Authorization", value))
    }
    return fields
  }

  /// Returns the configuration's fields for a request. Fields that are private to one origin are left out if the request
  /// has left that origin.
  package func additional(hasLeftOrigin: Bool) -> FieldList {
    hasLeftOrigin ? additional.filter { !RedirectPolicy.isPrivate($0.name) } : additional
  }

  /// Whether the program itself has set a field of resumable uploads (draft-ietf-httpbis-resumable-upload), in the
  /// request or for the session.
  package func hasUploadFields(_ fields: FieldList) -> Bool {
    let names = [
      "Upload-Draft-Interop-Version", "Upload-Complete", "Upload-Incomplete", "Upload-Offset", "Upload-Length",
    ]
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
