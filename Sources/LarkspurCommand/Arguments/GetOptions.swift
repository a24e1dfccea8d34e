/// The options of `larkspur get`, in the form of the command line.
package struct GetOptions: Hashable, Sendable {
  /// A field of `-H`. An empty value removes a field that the command would send by default.
  package struct Field: Hashable, Sendable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// The source of one `-d` option's data.
  package enum Data: Hashable, Sendable {
    case text(String)
    case file(String)
    case standardInput
  }

  package var url: String
  package var showsHead = false
  package var isVerbose = false
  /// The file to write, or `nil` for standard output.
  package var output: String?
  package var fields: [Field] = []
  package var method: String?
  package var data: [Data] = []
  private var dataIsJSON = false
  /// The limit for connecting, or `nil` for no limit.
  package var connectTimeout: Duration?
  /// The limit for the whole transfer, or `nil` for no limit.
  package var maxTime: Duration?
  package var failsOnHTTPError = false
  package var tls = TLSOptions()
  package var session = SessionOptions()
  /// The proxy; empty for none. If `nil`, the environment decides.
  package var proxy: String?
  /// Whether the transfer service carries the download out.
  package var isInBackground = false
  /// The hosts to reach without the proxy. If `nil`, the environment decides.
  package var proxyExceptions: String?

  package init(url: String) {
    self.url = url
  }

  /// The options of all commands that send a request, without those of TLS.
  static let optionsOfRequests: [ArgumentReader.Option] = [
    .init("v", "verbose"), .init("H", "header", takesValue: true), .init("x", "proxy", takesValue: true),
    .init(nil, "noproxy", takesValue: true), .init("h", "help"),
  ]

  private static let options: [ArgumentReader.Option] =
    [
      .init("i", "include"), .init("o", "output", takesValue: true), .init("X", "request", takesValue: true),
      .init("d", "data", takesValue: true), .init(nil, "connect-timeout", takesValue: true),
      .init(nil, "max-time", takesValue: true), .init("f", "fail"), .init(nil, "background"),
    ] + optionsOfRequests + TLSOptions.options + SessionOptions.options

  /// - Returns: The options, or `nil` if the command line asks for help.
  static func parse(_ arguments: ArraySlice<String>) throws(UsageError) -> GetOptions? {
    var reader = ArgumentReader(arguments, options: options, topic: .get)
    var result = GetOptions(url: "")
    while let argument = try reader.next() {
      switch argument {
      case .operand(let word): try result.take(url: word, topic: .get)
      case .option("help", _): return nil
      case .option(let name, let value):
        if try result.takeOfRequest(name, value, topic: .get) { continue }
        if try !result.session.take(name, value) { try result.take(name, value) }
        if name == "json" { try result.addData(value, isJSON: true) }
      }
    }
    try result.checkRequest(topic: .get)
    try result.session.check(with: result)
    try result.checkBackground()
    return result
  }

  mutating func take(url word: String, topic: HelpTopic) throws(UsageError) {
    guard url.isEmpty else { throw UsageError(secondURL: word, after: url, topic: topic) }
    guard !word.isEmpty else { throw UsageError("the URL is empty", topic: topic) }
    url = word
  }

  /// Takes an option of `optionsOfRequests`, or one of TLS.
  ///
  /// - Returns: `false` if the option is another one.
  mutating func takeOfRequest(_ name: String, _ value: String, topic: HelpTopic) throws(UsageError) -> Bool {
    switch name {
    case "verbose": isVerbose = true
    case "header": fields.append(try Self.field(value, of: "-H", topic: topic))
    case "proxy": proxy = value
    case "noproxy": proxyExceptions = value
    default: return try tls.take(name, value, topic: topic)
    }
    return true
  }

  /// Checks that there is a URL, and the combination of the options of TLS.
  func checkRequest(topic: HelpTopic) throws(UsageError) {
    guard !url.isEmpty else { throw UsageError("the URL is missing", topic: topic) }
    try tls.check(topic: topic)
  }

  /// Checks that a download of the service has no option that its session lacks.
  private func checkBackground() throws(UsageError) {
    guard isInBackground else { return }
    guard output != nil else {
      throw UsageError("--background needs -o: there has to be a file for the content", topic: .get)
    }
    var plain = GetOptions(url: url)
    plain.output = output
    plain.fields = fields
    plain.isInBackground = true
    guard plain == self else { throw UsageError("--background goes with -o and -H only", topic: .get) }
  }

  private mutating func take(_ name: String, _ value: String) throws(UsageError) {
    switch name {
    case "include": showsHead = true
    case "fail": failsOnHTTPError = true
    case "background": isInBackground = true
    case "output":
      guard !value.isEmpty else { throw UsageError("the file of -o has no name", topic: .get) }
      output = value == "-" ? nil : value
    case "request":
      // A 2xx response to CONNECT opens a tunnel, and the command has nothing to send through one.
      guard value != "CONNECT" else { throw UsageError("CONNECT is not a request for a resource", topic: .get) }
      method = value
    case "data": try addData(value, isJSON: false)
    case "connect-timeout": connectTimeout = try Self.timeout(value, of: name, topic: .get)
    case "max-time": maxTime = try Self.timeout(value, of: name, topic: .get)
    default: throw UsageError("unknown option --\(name)", topic: .get)
    }
  }

  private mutating func addData(_ value: String, isJSON: Bool) throws(UsageError) {
    guard data.isEmpty || isJSON == dataIsJSON else {
      throw UsageError("--data and --json exclude each other", topic: .get)
    }
    dataIsJSON = isJSON
    data.append(
      value == "@-" ? .standardInput : value.hasPrefix("@") ? .file(String(value.dropFirst())) : .text(value))
  }

  static func field(_ text: String, of option: String, topic: HelpTopic = .get) throws(UsageError) -> Field {
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else {
      throw UsageError("\(option) wants 'Name: value', not \(text.debugDescription)", topic: topic)
    }
    let value = text[text.utf8.index(after: colon)...]
    return Field(String(text[..<colon]), String(trimmed(value)))
  }

  /// Drops blanks and tabs around a value. A line break stays, because it could begin another field; it is refused
  /// later.
  private static func trimmed(_ text: Substring) -> Substring {
    var text = text
    while text.first == " " || text.first == "\t" { text.removeFirst() }
    while text.last == " " || text.last == "\t" { text.removeLast() }
    return text
  }

  /// - Returns: The timeout, or `nil` if the text is 0, which means no limit.
  static func timeout(_ text: String, of name: String, topic: HelpTopic) throws(UsageError) -> Duration? {
    guard let duration = Duration(seconds: text) else {
      throw UsageError("--\(name) wants seconds, such as 2 or 0.5, not \(text.debugDescription)", topic: topic)
    }
    return duration == .zero ? nil : duration
  }
}

extension Duration {
  /// Reads decimal seconds: `2`, `0.25`, `.5`. At most nine digits may stand before the point. Digits behind the ninth
  /// decimal place are ignored.
  package init?(seconds text: String) {
    let parts = text.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    let (whole, fraction) = (parts[0], parts.count > 1 ? parts[1] : "".utf8[...])
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    guard whole.count <= 9, !(whole.isEmpty && fraction.isEmpty), whole.allSatisfy(digits.contains),
      fraction.allSatisfy(digits.contains)
    else { return nil }
    let value = { (digits: Substring.UTF8View) in digits.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) } }
    let missingDigits = max(9 - fraction.count, 0)
    let nanoseconds = (0..<missingDigits).reduce(value(fraction.prefix(9))) { number, _ in number * 10 }
    self = .seconds(value(whole)) + .nanoseconds(nanoseconds)
  }
}
