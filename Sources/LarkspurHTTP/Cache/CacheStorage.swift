import LarkspurBytes

/// Whether a response may be stored, and what of it (RFC 9111 3).
public enum CacheStorage {
  /// What there is to store of a response.
  public struct Proposal: Sendable {
    public var fields: CacheFields
    public var selection: CacheSelection
    public var part: ContentRange?
  }

  /// - Parameters:
  ///   - isWanted: The response is stored even if nothing says how long it is fresh or how to validate it.
  ///   - now: When the head came, in seconds since 1970.
  public static func proposal(
    request: CacheRequest, status: Int, fields: CacheFields, isWanted: Bool = false, now: Double
  ) -> Proposal? {
    guard request.isGet, !request.hasBody, !request.control.noStore, isWanted || isOfUse(fields), isStorable(status)
    else { return nil }
    let control = CacheControl(fields)
    guard allowsStoring(control, status: status) else { return nil }
    guard CacheStatus.isHeuristicallyCacheable(status) || isExplicit(control, fields) else { return nil }
    guard let selection = CacheSelection(response: fields, request: request.fields) else { return nil }
    var part: ContentRange?
    if status == 206 {
      // RFC 9111 3.3: a part may be stored by those who understand what it is a part of.
      guard let range = fields.firstValue(named: "Content-Range").flatMap(ContentRange.init) else { return nil }
      part = range
    } else if BodyExtent({ fields.values(named: $0) }) == .part {
      return nil
    }
    return Proposal(fields: storable(fields, control, now: now), selection: selection, part: part)
  }

  /// RFC 9111 5.2.2.3: whoever understands the status may ignore no-store, which is for those who do not.
  static func allowsStoring(_ control: CacheControl, status: Int) -> Bool {
    control.mustUnderstand ? CacheStatus.isUnderstood(status) : !control.noStore
  }

  private static func isStorable(_ status: Int) -> Bool {
    200...599 ~= status && status != 304 && !CacheStatus.isAboutTheRequest(status)
  }

  /// The server's consent for a status that is not cacheable by itself. This is a private cache: `s-maxage` is no
  /// consent.
  private static func isExplicit(_ control: CacheControl, _ fields: CacheFields) -> Bool {
    control.isPublic || control.isPrivate || control.maxAge != nil || fields.contains(named: "Expires")
  }

  /// The fields that say how a response may be used again. Most answers of programs for programs have none of them:
  /// to store those would cost every request, and help none but the ones that take answers of any age.
  public static func isOfUse(_ fields: CacheFields) -> Bool {
    fields.contains { field in
      switch field.name.utf8.count {
      case 4: field.name.isCaselessly("ETag")
      case 7: field.name.isCaselessly("Expires")
      case 13: field.name.isCaselessly("Cache-Control") || field.name.isCaselessly("Last-Modified")
      default: false
      }
    }
  }

  /// The same of fields of which no text has been made.
  public static func isOfUse(_ fields: FieldTable, in bytes: Span<UInt8>) -> Bool {
    var index = 0
    while true {
      index = fields.index(from: index, nameLengths: lengthsOfUse)
      guard index < fields.count else { return false }
      let name = fields[index].name
      if wordsOfUse.contains(where: { $0.matches(bytes, name) }) { return true }
      index += 1
    }
  }

  private static let wordsOfUse: [CaselessWord] = ["ETag", "Expires", "Cache-Control", "Last-Modified"]
  private static let lengthsOfUse: UInt32 = 1 << 4 | 1 << 7 | 1 << 13

  /// Everything but what belongs to the connection or to a proxy (RFC 9111 3.1) and what `no-cache` names
  /// (RFC 9111 5.2.2.4). A response without a date gets the one at which it came (RFC 9110 6.6.1).
  public static func storable(_ fields: CacheFields, now: Double) -> CacheFields {
    storable(fields, CacheControl(fields), now: now)
  }

  static func storable(_ fields: CacheFields, _ control: CacheControl, now: Double) -> CacheFields {
    let stored = withoutConnectionFields(fields)
    var kept = stored
    if case .fields(let names) = control.noCache {
      kept.removeAll { field in names.contains { field.name.isCaselessly($0) } }
    }
    if !kept.contains(named: "Date") { kept.append((name: "Date", value: HTTPDate.format(now))) }
    return kept
  }

  static func withoutConnectionFields(_ fields: CacheFields) -> CacheFields {
    // A server may list as many as fit into a head.
    let going = connectionFields.union(fields.members(named: "Connection").map(\.asciiLowercased))
    return fields.filter { !going.contains($0.name.asciiLowercased) }
  }

  private static let connectionFields: Set<String> = [
    "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
  ]
}
