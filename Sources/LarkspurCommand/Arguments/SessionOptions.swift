import LarkspurHTTP

/// The options of `larkspur get` for the features of `URLSession` beyond one request and its response.
package struct SessionOptions: Hashable, Sendable {
  /// The value of one `-F` option.
  package struct Part: Hashable, Sendable {
    package var name: String
    package var content: GetOptions.Data
    /// The value of `Content-Type`. By default a text has none, and a file has `application/octet-stream`.
    package var type: String?
    /// The file name to send. By default a text has none, and a file has its own.
    package var fileName: String?
    /// More fields of the part's head.
    package var fields: FieldList

    package init(
      _ name: String, _ content: GetOptions.Data, type: String? = nil, fileName: String? = nil,
      fields: FieldList = []
    ) {
      self.name = name
      self.content = content
      self.type = type
      self.fileName = fileName
      self.fields = fields
    }
  }

  package struct CookieJar: Hashable, Sendable {
    /// The files to read; `-` is standard input.
    package var files: [String] = []
    /// The file that all cookies are written to, or `-` for standard output.
    package var output: String?

    /// Whether cookies are kept.
    var isInUse: Bool { !files.isEmpty || output != nil }
  }

  package var resumes = false
  package var credentials: RequestURL.Credentials?
  /// The token of Bearer authorization (RFC 6750), which takes precedence over `credentials`.
  package var bearerToken: String?
  package var usesDigest = false
  /// The values of `-b` that are cookies.
  package var cookies: [String] = []
  package var cookieJar = CookieJar()
  package var decodes = false
  package var isJSON = false
  package var followsRedirects = false
  package var redirectsMax = redirectsMaxDefault
  /// Whether a redirection's request names the URL before it in `Referer`.
  package var setsReferer = false
  package var parts: [Part] = []
  /// The maximum mean rate, or `nil` for no limit.
  package var bytesPerSecondMax: Int?
  package var showsMetrics = false

  package init() {}

  /// Maximum number of redirections. A session follows no more.
  static let redirectsMaxDefault = 20

  /// Checks the combination of all options.
  func check(with options: GetOptions) throws(UsageError) {
    if !parts.isEmpty, !options.data.isEmpty { throw Self.exclusion("form", isJSON ? "json" : "data") }
    if options.isHead, options.sendsContent { throw Self.exclusion("head", parts.isEmpty ? "data" : "form") }
    if options.failsOnHTTPError, options.failsWithBody { throw Self.exclusion("fail", "fail-with-body") }
    if options.usesRemoteName, options.output != nil { throw Self.exclusion("remote-name", "output") }
    if options.etagFile != nil {
      if resumes { throw Self.exclusion("etag-file", "resume") }
      if options.sendsContent || options.method ?? "GET" != "GET" { throw UsageError("--etag-file is for GET only") }
    }
    if usesDigest, bearerToken != nil { throw Self.exclusion("digest", "oauth2-bearer") }
    guard resumes else { return }
    guard options.output != nil || options.usesRemoteName || options.downloads.list != nil else {
      throw UsageError("--resume needs -o: there has to be a file to go on with")
    }
    if options.sendsContent || options.isHead || options.method ?? "GET" != "GET" {
      throw UsageError("--resume is for GET only")
    }
    if options.showsHead { throw Self.exclusion("resume", "include") }
    // A range counts bytes before decompression.
    if decodes { throw Self.exclusion("resume", "compressed") }
  }

  static func exclusion(_ one: String, _ other: String) -> UsageError {
    UsageError("--\(one) and --\(other) exclude each other")
  }

  static func credentials(_ text: String) throws(UsageError) -> RequestURL.Credentials {
    // RFC 7617, section 2: a user name has no colon; a password may have any number of them.
    guard let colon = text.firstIndex(of: ":") else { throw UsageError("--user wants USER:PASSWORD") }
    return .init(user: Array(text[..<colon].utf8), password: Array(text[text.index(after: colon)...].utf8))
  }

  static func rate(_ text: String) throws(UsageError) -> Int {
    guard let rate = bytes(text[...]) else {
      throw UsageError("--limit-rate wants bytes per second, such as 500K or 2M, not \(text.debugDescription)")
    }
    return rate
  }

  /// Reads a number of bytes above zero, such as `500K` or `2M`.
  static func bytes(_ text: Substring) -> Int? {
    let factors: [Character: Int] = ["K": 1 << 10, "M": 1 << 20, "G": 1 << 30]
    let factor = text.last.flatMap { factors[Character($0.uppercased())] }
    guard let number = Int(digits: factor == nil ? text : text.dropLast()), number > 0 else { return nil }
    let (bytes, isTooLarge) = number.multipliedReportingOverflow(by: factor ?? 1)
    return isTooLarge ? Int.max : bytes
  }
}

extension Int {
  /// Reads a number that has digits and nothing else.
  init?(digits text: some StringProtocol) {
    guard text.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains) else { return nil }
    self.init(text)
  }
}
