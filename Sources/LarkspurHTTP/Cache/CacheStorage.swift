import LarkspurBytes

/// Decides whether a response may be stored, and which parts of it (RFC 9111 3).
public enum CacheStorage {
  /// The parts of a response that are stored.
  public struct Proposal: Sendable {
    public var fields: FieldList
    public var selection: CacheSelection
  }

  /// Returns the parts of a response to store, or `nil` if it is not stored.
  ///
  /// - Parameters:
  ///   - isWanted: Whether the response is stored even if it names neither a lifetime nor a validator.
  ///   - now: The time at which the head came, in seconds since 1970.
  public static func proposal(
    request: CacheRequest, status: Int, fields: FieldList, isWanted: Bool = false, now: Double
  ) -> Proposal? {
    guard request.isGet, !request.hasBody, isWanted || isOfUse(fields), isStorable(status)
    else { return nil }
    let control = CacheControl(fields)
    guard CacheStatus.isHeuristicallyCacheable(status) || isExplicit(control, fields) else { return nil }
    guard allowsStoring(control, status: status, request),
      let selection = CacheSelection(response: fields, request: request.fields)
    else { return nil }
    // RFC 9111 3.3: a cache may store a part only if it understands the range.
    guard BodyExtent(status: status, { fields.values(named: $0) }) != .contradiction else { return nil }
    return Proposal(fields: storable(fields, control, now: now), selection: selection)
  }

  /// Whether neither the request nor the response forbids storing the response, new or with renewed fields (RFC 9111
  /// 5.2.1.5 and 5.2.2.5).
  ///
  /// RFC 9111 5.2.2.3: with `must-understand`, a cache that understands the status ignores the response's `no-store`,
  /// which is for other caches. A response with a status that is not understood is not stored.
  ///
  /// - Parameter request: The request that brought the response, or that validated it.
  static func allowsStoring(_ control: CacheControl, status: Int, _ request: CacheRequest) -> Bool {
    !request.control.noStore && (control.mustUnderstand ? CacheStatus.isUnderstood(status) : !control.noStore)
  }

  private static func isStorable(_ status: Int) -> Bool {
    200...599 ~= status && status != 304 && !CacheStatus.isAboutTheRequest(status)
  }

  /// Whether the server permits storing a status that is not cacheable by itself. This is a private cache: `s-maxage`
  /// is no permission.
  private static func isExplicit(_ control: CacheControl, _ fields: FieldList) -> Bool {
    control.isPublic || control.isPrivate || control.maxAge != nil || fields.contains(named: "Expires")
  }

  /// Whether the response has a field that determines its reuse. Most responses of programming interfaces lack such a
  /// field: storing them would cost time for each request, and serve only requests that accept responses of any age.
  public static func isOfUse(_ fields: FieldList) -> Bool {
    fields.contains { field in
      switch field.name.utf8.count {
      case 4: field.name.equalsIgnoringCase("ETag")
      case 7: field.name.equalsIgnoringCase("Expires")
      case 13: field.name.equalsIgnoringCase("Cache-Control") || field.name.equalsIgnoringCase("Last-Modified")
      default: false
      }
    }
  }

  /// Whether the response has a field that determines its reuse, without making text of its fields.
  public static func isOfUse(_ fields: FieldTable, in bytes: Span<UInt8>) -> Bool {
    var index = 0
    while true {
      index = fields.index(from: index, nameLengths: lengthsOfUse)
      guard index < fields.count else { return false }
      let name = fields[index].name
      if cacheFieldNames.contains(where: { $0.matches(bytes, name) }) { return true }
      index += 1
    }
  }

  /// Whether a response may be stored, as far as its fields show without making text of them. If `false`, a response
  /// with these fields has no `proposal` and no effect on an empty cache.
  public static func mayBeStored(_ fields: FieldTable, in bytes: Span<UInt8>) -> Bool {
    isOfUse(fields, in: bytes) && !isPlainlyForbidden(fields, in: bytes)
  }

  /// Whether `Cache-Control` has the directive `no-store`, and nothing that needs a parser or overrides it.
  private static func isPlainlyForbidden(_ fields: FieldTable, in bytes: Span<UInt8>) -> Bool {
    var hasNoStore = false
    var index = fields.index(of: cacheControl, from: 0, in: bytes)
    while index < fields.count {
      let value = fields[index].value
      var start = value.lowerBound
      for position in value.lowerBound...value.upperBound {
        let byte = position < value.upperBound ? bytes[position] : ASCII.comma
        if byte == ASCII.quote { return false }
        guard byte == ASCII.comma else { continue }
        var member = start..<position
        while let first = member.first, ASCII.isWhitespace(bytes[first]) { member.removeFirst() }
        while let last = member.last, ASCII.isWhitespace(bytes[last]) { member.removeLast() }
        if mustUnderstand.matches(bytes, member) { return false }
        if noStore.matches(bytes, member) { hasNoStore = true }
        start = position + 1
      }
      index = fields.index(of: cacheControl, from: index + 1, in: bytes)
    }
    return hasNoStore
  }

  private static let cacheControl: CaseInsensitiveToken = "Cache-Control"
  private static let noStore: CaseInsensitiveToken = "no-store"
  private static let mustUnderstand: CaseInsensitiveToken = "must-understand"
  private static let cacheFieldNames: [CaseInsensitiveToken] = ["ETag", "Expires", "Cache-Control", "Last-Modified"]
  private static let lengthsOfUse: UInt32 = 1 << 4 | 1 << 7 | 1 << 13

  /// Returns the fields to store: all but those of the connection or a proxy (RFC 9111 3.1) and those that `no-cache`
  /// names (RFC 9111 5.2.2.4). A response without `Date` gets the time at which it came (RFC 9110 6.6.1).
  public static func storable(_ fields: FieldList, now: Double) -> FieldList {
    storable(fields, CacheControl(fields), now: now)
  }

  static func storable(_ fields: FieldList, _ control: CacheControl, now: Double) -> FieldList {
    let stored = withoutConnectionFields(fields)
    var kept = stored
    kept.removeFields(of: control.noCache)
    if !kept.contains(named: "Date") { kept.append(Field("Date", HTTPDate.format(now))) }
    return kept
  }

  static func withoutConnectionFields(_ fields: FieldList) -> FieldList {
    let named = FieldNames(fields.members(named: "Connection"))
    return fields.filter { field in
      !connectionFields.contains(field.name)
        && (!named.contains(field.name) || fieldsOfSelection.contains(field.name))
    }
  }

  /// The fields that determine which requests a stored response answers. They are always stored, whatever `Connection`
  /// and `no-cache` name: the selection is derived from the stored fields when they are renewed, and RFC 9110 7.6.1
  /// forbids naming them in `Connection`.
  static let fieldsOfSelection = FieldNames(["cache-control", "vary"])

  private static let connectionFields = FieldNames([
    "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
  ])
}

extension FieldList {
  /// Removes the fields that a `no-cache` with field names withholds until a validation (RFC 9111 5.2.2.4).
  mutating func removeFields(of noCache: CacheControl.Scope) {
    guard case .fields(let names) = noCache else { return }
    removeAll { field in
      names.contains { field.name.equalsIgnoringCase($0) } && !CacheStorage.fieldsOfSelection.contains(field.name)
    }
  }
}
