import LarkspurConsole
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// The options of `larkspur get`, in the form of the command line.
package struct GetOptions: OptionList, Hashable, Sendable {
  /// The source of the data of one `-d` option, or of one part of a form.
  package enum Data: Hashable, Sendable {
    case text(String)
    /// A file; `-` is standard input.
    case file(String)

    /// Reads `@FILE`, and takes all else as it is.
    init(_ value: String) { self = value.hasPrefix("@") ? .file(String(value.dropFirst())) : .text(value) }
  }

  package var url: String
  /// Whether to ask for the head only.
  package var isHead = false
  package var showsHead = false
  /// The file for the heads of all responses, or `-` for standard output.
  package var headFile: String?
  /// The file for the record of the traffic, or `nil`.
  package var harFile: String?
  /// Whether the request is written as a command line, and not sent.
  package var printsCurl = false
  /// Whether records contain secrets.
  package var showsSecrets = false
  package var isVerbose = false
  package var isSilent = false
  /// Whether errors are shown even if `isSilent` is set.
  package var showsErrors = false
  /// The file to write, or `nil` for standard output.
  package var output: String?
  /// Whether standard output was asked for, so that any bytes are written to a terminal.
  package var writesAnyBytes = false
  /// The directory for the files of `-o` and `-O`, or `nil` for the working directory.
  package var outputDirectory: String?
  /// The file with the entity tag of the version that is there already.
  package var etagFile: String?
  /// Whether the file has the last name in the URL's path.
  package var usesRemoteName = false
  /// The fields of `-H`. An empty value removes a field that the command would send by default.
  package var fields: FieldList = []
  /// The value of `User-Agent`, empty for none. If `nil`, the command names itself.
  package var userAgent: String?
  package var referer: String?
  package var method: String?
  package var data: [Data] = []
  /// The data to encode, by their indices in `data`, each with the name that stands before it.
  package var encodedNames: [Int: String] = [:]
  /// Whether the data are a part of the URL, and not the content of the request.
  package var dataIsQuery = false
  /// Whether the content of the request is compressed.
  package var compresses = false
  /// The limit for connecting, or `nil` for no limit.
  package var connectTimeout: Duration?
  /// The limit for the whole transfer, or `nil` for no limit.
  package var maxTime: Duration?
  package var failsOnHTTPError = false
  /// Maximum number of retries. If `nil`, that of the standard policy for a GET into a file, and 0 otherwise.
  package var retriesMax: Int?
  /// Whether requests of all methods are sent again.
  package var retriesAllMethods = false
  /// Whether the command fails like `failsOnHTTPError`, but writes the response's content first.
  package var failsWithBody = false
  package var downloads = DownloadOptions()
  /// The text to write when the transfer is over.
  package var writeOut: WriteOut?
  /// Whether the user's own file of passwords is read.
  package var usesNetrc = false
  package var netrcFile: String?
  /// Whether braces and brackets in the URL stand for themselves.
  package var takesURLAsIs = false
  package var tls = TLSOptions()
  package var session = SessionOptions()
  /// The proxy; empty for none. If `nil`, the environment decides.
  package var proxy: String?
  /// Whether the transfer service carries the download out.
  package var isInBackground = false
  /// The hosts to reach without the proxy. If `nil`, the environment decides.
  package var proxyExceptions: String?
  /// The only kind of addresses to connect to, or `nil` for all.
  package var addressFamily: SocketAddress.Family?
  package var hostOverrides = HostOverrides()
  package var timeouts = Timeouts()
  /// The address or interface to connect from, or `nil` to let the kernel choose.
  package var localEndpoint: LocalEndpoint?

  /// The highest number of retries that can be asked for.
  static let retriesLimit = 1_000

  package init(url: String) {
    self.url = url
  }

  init() { self.init(url: "") }

  /// Whether an option gives a user, a token, or a field for them.
  var givesCredentials: Bool {
    session.credentials != nil || session.bearerToken != nil || fields.contains(named: "Authorization")
  }

  /// Whether the request has content.
  var sendsContent: Bool { !data.isEmpty && !dataIsQuery || !session.parts.isEmpty }

  mutating func take(_ word: String) throws(UsageError) { try Self.take(word, as: &url) }

  static func take(_ word: String, as url: inout String) throws(UsageError) {
    guard url.isEmpty else {
      throw UsageError("more than one URL: \(RequestURL.redacted(url)) and \(RequestURL.redacted(word))")
    }
    guard !word.isEmpty else { throw UsageError("the URL is empty") }
    url = word
  }

  mutating func check() throws(UsageError) {
    readList()
    try checkRequest(isDownload: true)
    try session.check(with: self)
    try downloads.check(with: self)
    try checkBackground()
  }

  /// Checks that there is a URL, and the combination of the options of TLS. Sets the method that options imply.
  ///
  /// - Parameter isDownload: Whether the command takes the options of downloads, of which `-x N` is one.
  mutating func checkRequest(isDownload: Bool = false) throws(UsageError) {
    if isHead || dataIsQuery { method = method ?? (isHead ? "HEAD" : "GET") }
    guard isDownload || !downloads.isInUse else { throw UsageError("-x wants a proxy, and not a number") }
    guard url.isEmpty == (downloads.list != nil) else {
      throw UsageError(url.isEmpty ? "the URL is missing" : "--input-file and a URL exclude each other")
    }
    guard !showsSecrets || harFile != nil || printsCurl else {
      throw UsageError("--with-secrets is for --har and --as-curl")
    }
    try tls.check()
  }

  /// Checks that a download of the service has no option that its session lacks.
  private func checkBackground() throws(UsageError) {
    guard isInBackground else { return }
    guard output != nil else {
      throw UsageError("--background needs -o: there has to be a file for the content")
    }
    var plain = GetOptions(url: url)
    plain.output = output
    plain.fields = fields
    plain.isInBackground = true
    guard plain == self else { throw UsageError("--background goes with -o and -H only") }
  }

  /// Mutes the console if the options ask for it.
  func mute() { if isSilent, !showsErrors { Console.mute() } }

  /// Reads a field, without blanks and tabs around its value. A line break stays, because it could begin another
  /// field, and is refused later.
  static func field(_ text: String, of option: String) throws(UsageError) -> Field {
    // By scalars, because a colon with a combining mark after it is another `Character`.
    guard let match = text.wholeMatch(of: /(?s)([^:]*):[ \t]*(.*?)[ \t]*/.matchingSemantics(.unicodeScalar)) else {
      throw UsageError("\(option) wants 'Name: value', not \(text.debugDescription)")
    }
    return Field(String(match.1), String(match.2))
  }

  /// - Returns: The timeout, or `nil` if the text is 0, which means no limit.
  static func timeout(_ text: String, of name: String) throws(UsageError) -> Duration? {
    guard let duration = Duration(seconds: text) else {
      throw UsageError("--\(name) wants seconds, such as 2 or 0.5, not \(text.debugDescription)")
    }
    return duration == .zero ? nil : duration
  }
}

extension Duration {
  /// Reads decimal seconds: `2`, `0.25`, `.5`. At most nine digits may stand before the point. Digits behind the ninth
  /// decimal place are ignored.
  package init?(seconds text: String) {
    guard let match = text.wholeMatch(of: /([0-9]{0,9})(?:\.([0-9]*))?/) else { return nil }
    let (whole, fraction) = (match.1, match.2 ?? "")
    guard !whole.isEmpty || !fraction.isEmpty else { return nil }
    let nanoseconds = Format.padded(String(fraction.prefix(9)), to: 9, with: "0")
    self = .seconds(Int64(whole) ?? 0) + .nanoseconds(Int64(nanoseconds) ?? 0)
  }
}
