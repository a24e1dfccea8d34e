import Larkspur
import LarkspurHTTP
import LarkspurIO

/// The files that a list of `-i` names, a line for each:
///
/// ```
/// # a comment
/// https://example.org/model.bin  out=models/one.bin  sha256=1f3a…
/// ```
///
/// Blanks and tabs separate the words. `out="a b"` has blanks in its value. A list may come from another place, so it
/// can name only files in the output's directory, and no hidden ones.
package struct DownloadList {
  /// A file of the list.
  package struct Entry: Hashable, Sendable {
    package var line: Int
    package var url: RequestURL
    /// The path in the output's directory.
    package var path: String
    package var checksum: DownloadChecksum?
  }

  /// All faults of a list: the status of the first one, and a message for each.
  package struct Faults: Error, Hashable, Sendable {
    package var status: ExitStatus
    package var messages: [String]
  }

  /// Limits of a list.
  static let bytesMax = 16 << 20
  private static let faultsShown = 20

  package let entries: [Entry]

  /// - Parameter name: The list's name in messages.
  package init(_ text: String, name: String) throws(Faults) {
    var entries: [Entry] = []
    var faults: [CommandFailure] = []
    var lines: [String: Int] = [:]
    for (index, text) in text.split(omittingEmptySubsequences: false, whereSeparator: Self.isLineEnd).enumerated() {
      let (number, text) = (index + 1, text.drop { $0.isWhitespace || $0 == "\u{feff}" })
      guard !text.isEmpty, !text.hasPrefix("#") else { continue }
      do throws(CommandFailure) {
        let entry = try Self.entry(text, number)
        if let other = lines.updateValue(number, forKey: entry.path) {
          throw CommandFailure(.usage, "\(entry.path) is the file of line \(other), too")
        }
        entries.append(entry)
      } catch {
        faults.append(CommandFailure(error.status, "\(name):\(number): \(error.message ?? "")"))
      }
    }
    if entries.isEmpty, faults.isEmpty { faults = [CommandFailure(.usage, "\(name) names no URL")] }
    if let first = faults.first {
      let more = faults.count > Self.faultsShown ? ["and \(faults.count - Self.faultsShown) more"] : []
      throw Faults(status: first.status, messages: faults.prefix(Self.faultsShown).compactMap(\.message) + more)
    }
    self.entries = entries
  }

  /// Names may contain Unicode's other line ends.
  private static func isLineEnd(_ character: Character) -> Bool { character == "\n" || character == "\r\n" }

  private static func entry(_ text: Substring, _ line: Int) throws(CommandFailure) -> Entry {
    let url = try RequestURL.parse(String(text.prefix { !$0.isWhitespace }))
    var (path, checksum): (String?, DownloadChecksum?)
    for word in text.drop(while: { !$0.isWhitespace }).matches(of: /([^\s=]+)(?:=(?:"([^"]*)"|(\S*)))?/) {
      let (key, value) = (word.output.1, String(word.output.2 ?? word.output.3 ?? ""))
      switch key {
      case "out" where path == nil: path = try safe(value)
      case _ where DownloadChecksum.Algorithm(rawValue: String(key)) != nil:
        guard checksum == nil else { throw CommandFailure(.usage, "there is more than one checksum") }
        do throws(DownloadChecksum.Invalid) {
          checksum = try DownloadChecksum("\(key):\(value)")
        } catch {
          throw CommandFailure(.usage, "\(error)")
        }
      case "out": throw CommandFailure(.usage, "out= is given twice")
      default:
        throw CommandFailure(
          .usage, "unknown word \(word.output.0): out=, sha256=, sha512=, sha1= and md5= may follow a URL")
      }
    }
    guard let path = path ?? url.safeFileName else {
      throw CommandFailure(.usage, "the URL's path has no file name at its end, and out= is missing")
    }
    return Entry(line: line, url: url, path: path, checksum: checksum)
  }

  /// Checks a path that a list names.
  private static func safe(_ path: String) throws(CommandFailure) -> String {
    let names = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard names.allSatisfy({ SuggestedFilename.isSafe($0) }) else {
      throw CommandFailure(
        .usage, "out=\(path): the path must stay in the output's directory, and have no hidden names")
    }
    return path
  }
}

extension SuggestedFilename {
  /// Whether a response could be saved under this name.
  fileprivate static func isSafe(_ text: String) -> Bool {
    name(disposition: nil, pathComponent: text, host: nil, mediaType: nil) == text
  }
}
