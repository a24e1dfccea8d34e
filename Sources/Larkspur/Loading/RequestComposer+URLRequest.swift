import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP

extension RequestComposer {
  convenience init(additional: [AnyHashable: Any]?) {
    var fields: FieldList = []
    for (name, value) in additional ?? [:] {
      if let name = name.base as? String { fields.append(Field(name, (value as? String) ?? "\(value)")) }
    }
    // A dictionary's order changes from run to run.
    fields.sort { $0.name < $1.name }
    self.init(additional: fields, program: Self.programFields)
  }

  /// Whether a session adds a field of this name to each request that has none.
  static func isStandard(_ name: String) -> Bool {
    standard.contains(named: name) || programFields.contains(named: name)
  }

  /// The standard fields that depend on the program and its user.
  static let programFields: FieldList = [
    Field("Accept-Language", acceptLanguage), Field("User-Agent", userAgent),
  ]

  static let userAgent = userAgent(ofProgram: ProcessInfo.processInfo.processName)

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

  /// Whether a response's content coding is decoded: not if the request sets `Accept-Encoding`, unless its exact form
  /// says so.
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
    try head(
      for: Form(request, path: target.path(of: request)), to: target, cache: cache, body: body, additions: additions)
  }

  /// Returns the fields that are sent, without those that the cache adds: the cache chooses a stored response by them.
  func fields(of request: URLRequest, _ additions: AdditionalFields) -> FieldList {
    fields(of: Form(request, path: "/"), additions)
  }

  /// Adds the configuration's fields that a request does not have. Fields that are private to one origin are added only
  /// if the request has not left that origin. A request of exact form gets no fields.
  func complete(_ request: inout URLRequest, hasLeftOrigin: Bool) {
    guard request.own.exactForm == nil else { return }
    for field in additional(hasLeftOrigin: hasLeftOrigin) where request.value(forHTTPHeaderField: field.name) == nil {
      request.setValue(field.value, forHTTPHeaderField: field.name)
    }
  }

  func hasUploadFields(_ request: URLRequest) -> Bool { hasUploadFields(request.own.fields ?? []) }
}

extension RequestComposer.Form {
  init(_ request: URLRequest, path: String) {
    let own = request.own
    self.init(method: own.method, path: path, fields: own.fields, isExact: own.exactForm != nil)
  }
}
