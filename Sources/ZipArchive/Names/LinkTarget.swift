/// The rule for the targets of symbolic links.
package enum LinkTarget {
  /// Maximum length of a target in bytes: a Linux path without its NUL.
  package static let lengthMax = 4095

  /// Whether what a link points to lies in a directory, without a look at the disk.
  ///
  /// In a relative target, `..` may stand at the beginning only. In `a/..`, `a` may be a link of the archive, and then
  /// the kernel goes up from another place. Without this form, each link of a chain stays inside if all do.
  ///
  /// - Parameters:
  ///   - target: The text of the link.
  ///   - parent: The components of the absolute path of the link's directory, without symbolic links.
  ///   - allowed: The components of the absolute path of the directory, without symbolic links.
  package static func stays(_ target: String, from parent: [String], within allowed: [String]) -> Bool {
    let bytes = Array(target.utf8)
    guard !bytes.isEmpty, bytes.count <= lengthMax, !bytes.contains(0) else { return false }
    var path = bytes.first == UInt8(ascii: "/") ? [] : parent
    var hasName = bytes.first == UInt8(ascii: "/")
    for part in bytes.split(separator: UInt8(ascii: "/")) {
      let part = String(decoding: part, as: UTF8.self)
      switch part {
      case ".": continue
      case "..":
        if hasName || path.isEmpty { return false }
        path.removeLast()
      default:
        hasName = true
        path.append(part)
      }
    }
    return path.count >= allowed.count && zip(path, allowed).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
  }

  /// Whether what a link of an archive points to lies in the destination, wherever that is: a target that is absolute
  /// lies in at most one.
  ///
  /// - Parameter parent: The components of the link's directory in the archive.
  package static func staysInAnyDestination(_ target: String, from parent: [String]) -> Bool {
    target.utf8.first != UInt8(ascii: "/") && stays(target, from: parent, within: [])
  }
}
