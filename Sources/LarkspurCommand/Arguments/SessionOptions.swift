/// The options of `larkspur get` for what `URLSession` does beyond one request and its response.
package struct SessionOptions: Hashable, Sendable {
  /// The value of one `-F` option.
  package struct Part: Hashable, Sendable {
    package enum Content: Hashable, Sendable {
      case text(String)
      case file(String)
    }

    package var name: String
    package var content: Content
    /// The value of `Content-Type`. By default a text has none, and a file has `application/octet-stream`.
    package var type: String?
    /// The file name to send. By default a text has none, and a file has its own.
    package var fileName: String?
    /// More fields of the part's head.
    package var fields: [GetOptions.Field]

    package init(
      _ name: String, _ content: Content, type: String? = nil, fileName: String? = nil, fields: [GetOptions.Field] = []
    ) {
      self.name = name
      self.content = content
      self.type = type
      self.fileName = fileName
      self.fields = fields
    }
  }

  package struct Credentials: Hashable, Sendable {
    package var user: String
    package var password: String

    package init(_ user: String, _ password: String) {
      self.user = user
      self.password = password
    }
  }

  package var resumes = false
  package var credentials: Credentials?
  package var usesDigest = false
  package var cookieJar: String?
  package var decodes = false
  package var isJSON = false
  package var followsRedirects = false
  package var parts: [Part] = []
  /// The maximum mean rate, or `nil` for no limit.
  package var bytesPerSecondMax: Int?
  package var showsMetrics = false

  package init() {}

  static let options: [ArgumentReader.Option] = [
    .init("C", "resume"), .init("u", "user", takesValue: true), .init(nil, "digest"),
    .init(nil, "cookie-jar", takesValue: true), .init(nil, "compressed"), .init(nil, "json", takesValue: true),
    .init("L", "location"), .init("F", "form", takesValue: true), .init(nil, "limit-rate", takesValue: true),
    .init(nil, "metrics"),
  ]

  /// Takes an option.
  ///
  /// - Returns: `false` if the option is not a session's.
  mutating func take(_ option: String, _ value: String) throws(UsageError) -> Bool {
    switch option {
    case "resume": resumes = true
    case "user": credentials = try Self.credentials(value)
    case "digest": usesDigest = true
    case "cookie-jar":
      guard !value.isEmpty else { throw UsageError("the file of --cookie-jar has no name", topic: .get) }
      cookieJar = value
    case "compressed": decodes = true
    case "json": isJSON = true
    case "location": followsRedirects = true
    case "form": parts.append(try FormPartReader.part(value))
    case "limit-rate": bytesPerSecondMax = try Self.rate(value)
    case "metrics": showsMetrics = true
    default: return false
    }
    return true
  }

  /// Checks the combination of all options.
  func check(with options: GetOptions) throws(UsageError) {
    if !parts.isEmpty, !options.data.isEmpty { throw Self.exclusion("form", isJSON ? "json" : "data") }
    guard resumes else { return }
    guard options.output != nil else {
      throw UsageError("--resume needs -o: there has to be a file to go on with", topic: .get)
    }
    if !options.data.isEmpty || !parts.isEmpty || options.method ?? "GET" != "GET" {
      throw UsageError("--resume is for GET only", topic: .get)
    }
    if options.showsHead { throw Self.exclusion("resume", "include") }
    // A range counts bytes before decompression.
    if decodes { throw Self.exclusion("resume", "compressed") }
  }

  private static func exclusion(_ one: String, _ other: String) -> UsageError {
    UsageError("--\(one) and --\(other) exclude each other", topic: .get)
  }

  private static func credentials(_ text: String) throws(UsageError) -> Credentials {
    // RFC 7617, section 2: a user name has no colon; a password may have any number of them.
    guard let colon = text.firstIndex(of: ":") else {
      throw UsageError("--user wants USER:PASSWORD", topic: .get)
    }
    return Credentials(String(text[..<colon]), String(text[text.index(after: colon)...]))
  }

  private static func rate(_ text: String) throws(UsageError) -> Int {
    let factors: [Character: Int] = ["K": 1 << 10, "M": 1 << 20, "G": 1 << 30]
    let factor = text.last.flatMap { factors[Character($0.uppercased())] }
    let digits = factor == nil ? text[...] : text.dropLast()
    guard digits.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains), let number = Int(digits), number > 0
    else {
      throw UsageError(
        "--limit-rate wants bytes per second, such as 500K or 2M, not \(text.debugDescription)", topic: .get)
    }
    let (rate, isTooLarge) = number.multipliedReportingOverflow(by: factor ?? 1)
    return isTooLarge ? Int.max : rate
  }

  static let help = """
      -C, --resume              Complete the file of -o: ask for what comes behind its bytes. It is written in place,
                                and stays as far as it came when the transfer fails. A status of 400 or more fails.
      -u, --user USER:PASSWORD  Send them as Basic authorization. (Others on this machine can see command lines.)
          --digest              Prove to know them in place of sending them: as Digest, when the server asks.
          --cookie-jar FILE     Send the cookies of FILE (Netscape's format), and write them there with the new ones.
          --compressed          Ask for gzip or deflate, and write what was compressed.
          --json DATA           As -d, with Content-Type and Accept for JSON. Several are joined without anything.
      -L, --location            Follow redirections, 20 at most. User, password and the fields of one origin are not
                                told to another.
      -F, --form NAME=TEXT      Send a multipart form. NAME=@FILE sends a file. ;type=TYPE, ;filename=NAME and
                                ;headers='Name: value' may follow. Double quotes around TEXT, FILE or NAME keep
                                semicolons, commas and blanks. Repeatable.
          --limit-rate RATE     Receive no more than RATE bytes per second on average: 500K, 2M.
          --metrics             Show on standard error how long each part of each request took.

    """
}
