import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// A cookie storage's file, which processes share.
///
/// A change is read, merged and written under a lock: `cookies.new` is written and synced, takes the place of
/// `cookies`, and then the folder is synced. Whoever is killed in between leaves the old file or the new one, and a
/// `cookies.new` that the next writer removes. Nobody has to lock to read. Only the user may read the files (0600, in a
/// folder of 0700), and links are not followed.
package final class CookieDisk: Sendable {
  /// What has just been done, for tests that end the world there.
  package enum Step: CaseIterable, Sendable {
    case locked, cleared, created, half, written, synced, renamed
  }

  static let name = "cookies"
  static let newName = "cookies.new"
  static let damagedName = "cookies.damaged"
  static let lockName = "cookies.lock"

  /// The folder with the files. It is made, with what is above it, when something is first written.
  let path: String
  private let afterStep: (@Sendable (Step) throws -> Void)?

  package init(path: String, afterStep: (@Sendable (Step) throws -> Void)? = nil) {
    self.path = path
    self.afterStep = afterStep
  }

  /// A later version of Larkspur wrote the file: it is left alone, and nothing is kept.
  struct IsNewer: Error {}

  /// The cookies in the file, and a checksum of the file, by which a later look tells whether the file is another.
  struct Content {
    var cookies: [Cookie] = []
    /// Zero if there is no file.
    var checksum: UInt64 = 0
  }

  /// What is there now. None if there is no file, or none that can be read.
  func read() -> [Cookie] { content().cookies }

  func content() -> Content {
    guard let folder = try? Folder(path: path, isCreating: false), let bytes = try? content(of: folder),
      case .cookies(let cookies) = CookieFile.read(bytes)
    else { return Content() }
    return Content(cookies: cookies, checksum: Checksum.of(bytes.span))
  }

  /// Replaces what is there. `merge` is given the present cookies, and returns those that are to be there.
  ///
  /// A damaged file counts as none, and is kept as `cookies.damaged`.
  /// - Returns: The content now and the checksum of the file before, or `nil` if another writer has the lock and nothing was
  ///   done.
  /// - Throws: `Errno` or ``IsNewer``; the file is as it was, or is replaced though that may not survive a loss of
  ///   power.
  func update(_ merge: ([Cookie]) -> [Cookie]) throws -> (content: Content, before: UInt64)? {
    let folder = try Folder.ofOwner(at: path)
    guard let lock = try folder.lock(Self.lockName) else { return nil }
    defer { withExtendedLifetime(lock) {} }
    try afterStep?(.locked)
    var present: [Cookie] = []
    var before: UInt64 = 0
    if let bytes = try content(of: folder) {
      before = Checksum.of(bytes.span)
      switch CookieFile.read(bytes) {
      case .cookies(let cookies): present = cookies
      case .damaged: try folder.rename(Self.name, to: Self.damagedName)
      case .newer: throw IsNewer()
      }
    }
    let wanted = merge(present)
    guard wanted != present else { return (Content(cookies: wanted, checksum: before), before) }
    let bytes = CookieFile.bytes(of: wanted)
    try replace(in: folder, with: bytes)
    return (Content(cookies: wanted, checksum: Checksum.of(bytes.span)), before)
  }

  private func replace(in folder: Folder, with bytes: [UInt8]) throws {
    do { try folder.remove(Self.newName) } catch Errno.noSuchFile {}
    try afterStep?(.cleared)
    let file = try folder.create(Self.newName)
    try afterStep?(.created)
    let half = bytes.count / 2
    try file.write(bytes.span.extracting(..<half))
    try afterStep?(.half)
    try file.write(bytes.span.extracting(half...))
    try afterStep?(.written)
    try file.sync()
    try afterStep?(.synced)
    try folder.rename(Self.newName, to: Self.name)
    try afterStep?(.renamed)
    try folder.sync()
  }

  /// Nil: there is no file.
  private func content(of folder: Folder) throws(Errno) -> [UInt8]? {
    do throws(Errno) {
      let bytes = try folder.read(Self.name, atMost: CookieFile.bytesMax + 1)
      guard bytes.count <= CookieFile.bytesMax else { throw .fileTooLarge }
      return bytes
    } catch .noSuchFile {
      return nil
    }
  }
}

/// Where cookies are kept, by the XDG base directory specification: `$XDG_DATA_HOME`, or `~/.local/share`.
enum CookiePlaces {
  static func dataHome(_ environment: [String: String] = ProcessInfo.processInfo.environment) -> String {
    // The specification: a relative path is to be ignored.
    if let home = environment["XDG_DATA_HOME"], home.hasPrefix("/") { return home }
    return (environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? NSHomeDirectory()) + "/.local/share"
  }

  /// `<data home>/<program>/larkspur`.
  static func folder(ofProgram name: String) -> String { "\(dataHome())/\(component(name))/larkspur" }

  /// `<data home>/larkspur/groups/<identifier>`.
  static func folder(ofGroup identifier: String) -> String { "\(dataHome())/larkspur/groups/\(component(identifier))" }

  /// A name that is one component of a path, and no hidden one; two names are never one. A longer one than file systems
  /// take is cut, and told from others by a number.
  static func component(_ name: String) -> String {
    var allowed = CharacterSet.alphanumerics
    allowed.insert(charactersIn: "-_. ")
    var encoded = name.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
    if encoded.isEmpty { encoded = "%" }
    if encoded.hasPrefix(".") { encoded = "%2E" + encoded.dropFirst() }
    guard encoded.utf8.count > 200 else { return encoded }
    let number = encoded.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    return encoded.prefix(180) + "%\(String(number, radix: 16))"
  }
}
