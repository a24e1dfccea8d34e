import Foundation
import LarkspurBytes
import LarkspurHTTP
import Synchronization

/// The head of an HTTP response.
open class HTTPURLResponse: URLResponse, @unchecked Sendable {
  /// The status code, usually from 100 to 599. A server may send any three digits.
  open var statusCode: Int { status }

  private let status: Int
  let fields: ResponseFields
  let httpVersion: String
  /// Whether the content has been decoded, so that its length differs from the length on the wire.
  let isDecoded: Bool
  private let keptTrailers = Mutex<ResponseFields?>(nil)

  /// Whether the content coding of the content has been undone. The content of a response that a program made counts as
  /// decoded, also if the response has a `Content-Encoding`.
  var hasDecodedContent: Bool {
    if case .given = fields { return isDecoded || !fields.values(of: "Content-Encoding").isEmpty }
    return isDecoded
  }

  /// - Returns: Always a response. The initializer is failable only for source compatibility.
  public init?(url: URL, statusCode: Int, httpVersion: String?, headerFields: [String: String]?) {
    status = statusCode
    self.httpVersion = httpVersion ?? "HTTP/1.1"
    isDecoded = false
    fields = .given(FieldSpelling.canonical(headerFields ?? [:]))
    super.init(url: url)
  }

  /// Creates a response without fields and with status 200, for tests and for subclasses in tests.
  public override init(url: URL, mimeType: String?, expectedContentLength length: Int, textEncodingName name: String?) {
    status = Self.statusDefault
    httpVersion = "HTTP/1.1"
    isDecoded = false
    fields = .given([:])
    super.init(url: url, mimeType: mimeType, expectedContentLength: length, textEncodingName: name)
  }

  /// Creates a response without a URL and fields and with status 200, for tests.
  ///
  /// The initializer is public because Darwin's class inherits `init()` from `NSObject`, and programs written for
  /// Darwin call it (`HTTPURLResponse()`, also from subclasses). FoundationNetworking has no such initializer. A
  /// package's extension with a `convenience init()` compiles, and the package calls its own.
  public init() {
    status = Self.statusDefault
    httpVersion = "HTTP/1.1"
    isDecoded = false
    fields = .given([:])
    super.init()
  }

  /// The default status, as on Darwin.
  private static let statusDefault = 200

  /// - Parameter isDecoded: Whether the content has been decoded, so that its length is not that of `Content-Length`.
  init(url: URL, statusCode: Int, httpVersion: String, fields: ResponseFields, isDecoded: Bool) {
    status = statusCode
    self.httpVersion = httpVersion
    self.fields = fields
    self.isDecoded = isDecoded
    super.init(url: url)
  }

  override func makeType() -> (mimeType: String?, charset: String?) {
    ContentType.parse(fields)
  }

  override func makeLength() -> Int64 {
    guard !isDecoded, let text = fields.values(of: "Content-Length").first, let length = Self.length(text), length >= 0
    else { return -1 }
    // RFC 9112 6.3: on the wire a transfer coding overrides the length.
    if case .wire = fields, !fields.values(of: "Transfer-Encoding").isEmpty { return -1 }
    return length
  }

  /// Parses a number, or a list of equal numbers (RFC 9110 8.6).
  private static func length(_ text: String) -> Int64? {
    if let length = Int64(text) { return length }
    let members = Set(text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) })
    return members.count == 1 ? members.first.flatMap { Int64($0) } : nil
  }

  override func makeFilename() -> String {
    SuggestedFilename.name(
      disposition: fields.values(of: "Content-Disposition").first, url: url, mimeType: mimeType)
  }

  /// All header fields. Names have one form regardless of the server's spelling, such as `Content-Type` and `Etag`, and
  /// `WWW-Authenticate` as the exception; names that begin with `x-` are unchanged. Fields with equal names are one
  /// field, with their values joined by `, `. To look a field up regardless of case, use
  /// ``value(forHTTPHeaderField:)``.
  open var allHeaderFields: [AnyHashable: Any] { fields.dictionary }

  /// Returns the value of a field. Names are compared without regard to case.
  open func value(forHTTPHeaderField field: String) -> String? { fields.value(of: field) }

  /// The trailer fields of the response (RFC 9110 6.5), which come after a chunked body: checksums, the status of a call.
  /// Empty until the content has arrived. In a load's completion, and after the last element of an asynchronous sequence,
  /// they are complete. Names have the form of ``allHeaderFields``. From any thread.
  ///
  /// Trailers are never merged into the header fields, and a trailer has no other effect: a `Set-Cookie` stores
  /// nothing. Their size is limited to 16 KiB; a larger section fails the load. Caches, archives and background
  /// sessions do not keep trailers. Some servers send them only to requests with `TE: trailers`. Darwin and curl's
  /// library have no such property; `curl --include` shows trailers.
  public var trailerFields: [String: String] { keptTrailers.withLock { $0 }?.dictionary ?? [:] }

  func keep(trailers: ResponseFields) { keptTrailers.withLock { $0 = trailers } }

  /// Returns the English phrase of a status: the phrase of its registration (RFC 9110 15), or else of its class.
  open class func localizedString(forStatusCode statusCode: Int) -> String { StatusText.phrase(for: statusCode) }

  open override func isEqual(_ value: Any?) -> Bool {
    guard super.isEqual(value), let other = value as? HTTPURLResponse else { return false }
    return self === other || statusCode == other.statusCode && fields.dictionary == other.fields.dictionary
  }

  override func combine(into hasher: inout Hasher) {
    super.combine(into: &hasher)
    hasher.combine(statusCode)
  }

  /// URL, status and fields, in a human-readable form.
  open override var description: String {
    let lines = fields.dictionary.sorted { $0.key < $1.key }.map { name, value in
      // Foundation quotes these values, too.
      let isQuoted = name == "Content-Type" || name == "Content-Disposition" && value.contains(";")
      return "   \"\(name)\" = \(isQuoted ? "\"\(value)\"" : value);\n"
    }.joined()
    // `<HTTPURLResponse: 0x1>`, without the colon.
    var name = super.description
    if let colon = name.firstIndex(of: ":") { name.remove(at: colon) }
    return "\(name) { URL: \(url?.absoluteString ?? "(null)") }{ status: \(statusCode), headers {\n\(lines)} }"
  }

  // MARK: - Archives

  open override func encode(with aCoder: NSCoder) {
    super.encode(with: aCoder)
    aCoder.encode(Int64(statusCode), forKey: "statusCode")
    aCoder.encode(httpVersion as NSString, forKey: "httpVersion")
    aCoder.encode(fields.dictionary as NSDictionary, forKey: "allHeaderFields")
  }

  /// Reads a response from an archive. Fields that no server could have sent (RFC 9110 5.1, 5.5) are left out.
  ///
  /// - Returns: `nil` if the status in the archive is not a number from 0 to 999. A missing status counts as 0.
  public required init?(coder aDecoder: NSCoder) {
    let hasStatus = aDecoder.containsValue(forKey: "statusCode")
    guard let number = hasStatus ? aDecoder.number(forKey: "statusCode") : 0, number <= 999 else { return nil }
    status = Int(number)
    httpVersion = aDecoder.line(forKey: "httpVersion") ?? "HTTP/1.1"
    let all = aDecoder.textsByName(forKey: "allHeaderFields") ?? [:]
    fields = .given(FieldSpelling.canonical(all.filter { $0.key.isToken && $0.value.isFieldValue }))
    isDecoded = false
    super.init(coder: aDecoder)
  }
}
