import Larkspur
import LarkspurEngine
import LarkspurIO

/// The options of `larkspur get` for downloads in pieces, from several mirrors, and of several files.
package struct DownloadOptions: Hashable, Sendable {
  /// Maximum number of requests at once for a file, or `nil` for one at each mirror.
  package var connections: Int?
  /// URLs of the same file.
  package var mirrors: [String] = []
  package var checksum: DownloadChecksum?
  /// The URL of a file with checksums.
  package var checksumSource: String?
  /// A file that names the URLs, or `-` for standard input.
  package var list: String?
  /// Maximum number of files at once.
  package var filesMax: Int?

  package init() {}

  static let filesRange = 1...64

  /// Whether the download has a part, a record and a verification.
  var isInUse: Bool { self != DownloadOptions() }

  static let options: [CommandOption<DownloadOptions>] = [
    .init(
      nil, "connections", "N",
      "Load the file of -o in pieces over N connections, and continue what an earlier command has left. The file gets "
        + "its name when it is whole. `-x N` is short for it: a number is no proxy."
    ) { options, value throws(UsageError) in try options.setConnections(value) },
    .init(nil, "mirror", "URL", "Load the file from URL, too. Repeatable: all have the same bytes.") {
      options, value throws(UsageError) in options.mirrors.append(value)
    },
    .init(
      nil, "checksum", "ALGORITHM:HASH",
      "Give the file its name only if it has this checksum: sha256, sha512, sha1 or md5, and hexadecimal digits."
    ) { options, value throws(UsageError) in
      do throws(DownloadChecksum.Invalid) {
        options.checksum = try DownloadChecksum(value)
      } catch {
        throw UsageError("--checksum: \(error)")
      }
    },
    .text(
      nil, "checksum-from", "URL",
      "As --checksum, with the file's line of a SHA256SUMS at URL, or with the hash that stands there alone.",
      \.checksumSource),
    .init(
      nil, "input-file", "LIST",
      "Load all files of LIST (`-`: standard input), which has a line for each: `URL  out=NAME  sha256=HASH`. `-i LIST` is "
        + "short for it, if LIST is a file."
    ) { options, value throws(UsageError) in options.list = value },
    .init("Z", "parallel-max", "N", "Load N files of a list at once (4).") { options, value throws(UsageError) in
      options.filesMax = try Self.number(value, Self.filesRange, of: "parallel-max")
    },
  ]

  mutating func setConnections(_ text: String) throws(UsageError) {
    connections = try Self.number(text, DownloadPlan.connectionsRange, of: "connections")
  }

  private static func number(_ text: String, _ range: ClosedRange<Int>, of name: String) throws(UsageError) -> Int {
    guard let number = Int(digits: text), range ~= number else {
      throw UsageError(
        "--\(name) wants a number from \(range.lowerBound) to \(range.upperBound), not \(text.debugDescription)")
    }
    return number
  }

  /// Checks the combination of all options.
  func check(with options: GetOptions) throws(UsageError) {
    guard isInUse else { return }
    guard list != nil || options.output != nil || options.usesRemoteName else {
      throw UsageError("a download in pieces needs -o or -O: there has to be a file")
    }
    if list == nil, filesMax != nil { throw UsageError("--parallel-max is for the files of --input-file") }
    if list != nil {
      for (isGiven, name) in [
        (options.output != nil, "output"), (!mirrors.isEmpty, "mirror"), (checksum != nil, "checksum"),
      ] where isGiven { throw SessionOptions.exclusion("input-file", name) }
    }
    if checksum != nil, checksumSource != nil { throw SessionOptions.exclusion("checksum", "checksum-from") }
    for (isGiven, name) in [
      (options.isHead, "head"), (options.sendsContent || options.dataIsQuery, "data"),
      (options.method ?? "GET" != "GET", "request"),
      (options.showsHead, "include"), (options.headFile != nil, "dump-header"), (options.harFile != nil, "har"),
      (options.printsCurl, "as-curl"), (options.isInBackground, "background"), (options.etagFile != nil, "etag-file"),
      (options.failsWithBody, "fail-with-body"),
      (options.session.decodes, "compressed"),
      (options.session.usesDigest, "digest"), (options.session.showsMetrics, "metrics"),
    ] where isGiven {
      throw UsageError("--\(name) is not for downloads in pieces (-x, --mirror, --checksum, -i LIST)")
    }
    try options.writeOut?.checkForPieces()
  }
}

extension GetOptions {
  /// Reads `-i LIST`: without a list, `-i` has no value and is curl's.
  mutating func readList() {
    guard showsHead, downloads.list == nil, !url.contains("://") else { return }
    let isFile = if case .regularFile? = try? FilePaths.kind(of: url) { true } else { false }
    guard url == "-" || isFile || downloads.filesMax != nil else { return }
    (downloads.list, url, showsHead) = (url, "", false)
  }

  /// Reads the value of `-x`: a number is that of connections, and any other text is curl's, a proxy.
  mutating func setProxyOrConnections(_ text: String) throws(UsageError) {
    if Int(digits: text) == nil { proxy = text } else { try downloads.setConnections(text) }
  }
}
