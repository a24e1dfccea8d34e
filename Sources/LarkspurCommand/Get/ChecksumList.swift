import Larkspur
import LarkspurIO

/// The text of a file with checksums, such as `SHA256SUMS`.
///
/// ```
/// HASH  NAME     HASH *NAME     SHA256 (NAME) = HASH     or the hash alone
/// ```
///
/// Other lines are skipped: such files may be signed. The length of a hash determines its algorithm.
package struct ChecksumList {
  /// The reason why there is no checksum of a file.
  package enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
    case missing(String)
    case ambiguous(String)

    package var description: String {
      switch self {
      case .missing(let name): "it has no checksum of \(name)"
      case .ambiguous(let name): "it has more than one checksum of \(name)"
      }
    }
  }

  /// A hash, and the file that it is for, or `nil` if it stands alone.
  private struct Line: Hashable {
    var checksum: DownloadChecksum
    var name: String?
  }

  private let lines: [Line]

  package init(_ text: String) { lines = text.split(whereSeparator: \.isNewline).compactMap { Self.line($0) } }

  private static func line(_ text: Substring) -> Line? {
    if let match = text.wholeMatch(of: /\s*([A-Za-z0-9]+) \((.+)\) = ([0-9A-Fa-f]+)\s*/) {
      guard let checksum = try? DownloadChecksum("\(match.1):\(match.3)") else { return nil }
      return Line(checksum: checksum, name: FilePaths.name(of: String(match.2)))
    }
    // A backslash before the hash says that backslashes in the name are doubled.
    guard let match = text.wholeMatch(of: /\s*(\\?)([0-9A-Fa-f]+)(?:[ \t]+\*?(.*\S))?\s*/),
      let algorithm = DownloadChecksum.Algorithm.allCases.first(where: { $0.byteCount * 2 == match.2.utf8.count }),
      let checksum = try? DownloadChecksum("\(algorithm.rawValue):\(match.2)")
    else { return nil }
    let path = match.3.map { String(match.1.isEmpty ? $0 : $0.replacing("\\\\", with: "\\")) }
    // The name of standard input.
    return Line(checksum: checksum, name: path == "-" ? nil : path.map(FilePaths.name))
  }

  /// Returns the checksum of a file. Of several algorithms the strongest counts.
  ///
  /// - Parameter names: The names that the file has: here, and at the server.
  package func checksum(of names: [String]) throws(Failure) -> DownloadChecksum {
    let isBare = lines.count == 1 && lines[0].name == nil
    let found = lines.filter { line in isBare || line.name.map(names.contains) == true }.map(\.checksum)
    let size = found.map(\.algorithm.byteCount).max()
    let checksums = Set(found.filter { $0.algorithm.byteCount == size })
    guard let checksum = checksums.first else { throw .missing(names.first ?? "") }
    guard checksums.count == 1 else { throw .ambiguous(names.first ?? "") }
    return checksum
  }
}
