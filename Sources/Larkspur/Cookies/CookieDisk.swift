import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// A cookie storage's file, which processes share.
///
/// An update reads, merges and writes under a lock: it writes and syncs `cookies.new`, renames it to `cookies`, and
/// then syncs the directory. A process that is killed in between leaves the old file or the new one, and perhaps a
/// `cookies.new` that the next writer removes. Reading needs no lock. Only the user may read the files (mode 0600, in a
/// directory of mode 0700), and links are not followed.
package final class CookieDisk: Sendable {
  /// The steps of an update, at which tests can stop it.
  package enum Step: CaseIterable, Sendable {
    case locked, cleared, created, half, written, synced, renamed
  }

  static let name = "cookies"
  static let newName = "cookies.new"
  static let damagedName = "cookies.damaged"
  static let lockName = "cookies.lock"

  /// The directory of the files. The first write creates it and its parents.
  let path: String
  private let afterStep: (@Sendable (Step) throws -> Void)?

  package init(path: String, afterStep: (@Sendable (Step) throws -> Void)? = nil) {
    self.path = path
    self.afterStep = afterStep
  }

  /// Thrown if a later version of Larkspur wrote the file. The file is left unchanged, and nothing is stored.
  struct IsNewer: Error {}

  /// The cookies in the file, and the file's checksum, which shows later whether the file has changed.
  struct Content {
    var cookies: [Cookie] = []
    /// The checksum, or zero if there is no file.
    var checksum: UInt64 = 0
  }

  /// Returns the cookies in the file. Empty if there is no file, or if it cannot be read.
  func read() -> [Cookie] { content().cookies }

  func content() -> Content {
    guard let directory = try? Directory(path: path, isCreating: false), let bytes = try? content(of: directory),
      case .cookies(let cookies) = CookieFile.read(bytes)
    else { return Content() }
    return Content(cookies: cookies, checksum: Checksum.of(bytes.span))
  }

  /// Replaces the cookies in the file. `merge` takes the current cookies and returns the new ones.
  ///
  /// A damaged file counts as empty, and is kept as `cookies.damaged`.
  /// - Returns: The new content and the checksum of the file before, or `nil` if another writer holds the lock and
  ///   nothing was done.
  /// - Throws: `Errno` or ``IsNewer``. The file is then unchanged, or is replaced but might not survive a power loss.
  func update(_ merge: ([Cookie]) -> [Cookie]) throws -> (content: Content, before: UInt64)? {
    let directory = try Directory.ofOwner(at: path)
    guard let lock = try directory.lock(Self.lockName) else { return nil }
    defer { withExtendedLifetime(lock) {} }
    try afterStep?(.locked)
    var present: [Cookie] = []
    var before: UInt64 = 0
    if let bytes = try content(of: directory) {
      before = Checksum.of(bytes.span)
      switch CookieFile.read(bytes) {
      case .cookies(let cookies): present = cookies
      case .damaged: try directory.rename(Self.name, to: Self.damagedName)
      case .newer: throw IsNewer()
      }
    }
    let wanted = merge(present)
    guard wanted != present else { return (Content(cookies: wanted, checksum: before), before) }
    let bytes = CookieFile.bytes(of: wanted)
    try replace(in: directory, with: bytes)
    return (Content(cookies: wanted, checksum: Checksum.of(bytes.span)), before)
  }

  private func replace(in directory: Directory, with bytes: [UInt8]) throws {
    do { try directory.remove(Self.newName) } catch Errno.noSuchFile {}
    try afterStep?(.cleared)
    let file = try directory.create(Self.newName)
    try afterStep?(.created)
    let half = bytes.count / 2
    try file.write(bytes.span.extracting(..<half))
    try afterStep?(.half)
    try file.write(bytes.span.extracting(half...))
    try afterStep?(.written)
    try file.sync()
    try afterStep?(.synced)
    try directory.rename(Self.newName, to: Self.name)
    try afterStep?(.renamed)
    try directory.sync()
  }

  /// Returns the bytes of the file, or `nil` if there is no file.
  private func content(of directory: Directory) throws(Errno) -> [UInt8]? {
    do throws(Errno) {
      let bytes = try directory.read(Self.name, atMost: CookieFile.bytesMax + 1)
      guard bytes.count <= CookieFile.bytesMax else { throw .fileTooLarge }
      return bytes
    } catch .noSuchFile {
      return nil
    }
  }
}

/// The locations of cookie files, by the XDG Base Directory Specification: `$XDG_DATA_HOME`, or `~/.local/share`.
enum CookieLocation {
  static func dataHome(_ environment: [String: String] = EnvironmentVariable.all) -> String {
    // The specification says that a relative path is ignored.
    if let home = environment["XDG_DATA_HOME"], home.hasPrefix("/") { return home }
    return (environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? NSHomeDirectory()) + "/.local/share"
  }

  /// `<data home>/<program>/larkspur`.
  static func directory(ofProgram name: String) -> String { "\(dataHome())/\(FileName.component(name))/larkspur" }

  /// `<data home>/larkspur/groups/<identifier>`.
  static func directory(ofGroup identifier: String) -> String {
    "\(dataHome())/larkspur/groups/\(FileName.component(identifier))"
  }
}
