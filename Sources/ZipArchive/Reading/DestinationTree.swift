import Foundation
import LarkspurIO

/// The destination of an extraction: makes directories, files and links in it, and undoes all of that after an error.
///
/// Every step goes from one open directory to the next by a single name, and follows no symbolic link. A file is
/// written in a private directory of the destination, `.ziparchive-…`, and moved to its place when it is complete. A
/// file that is replaced is exchanged with the new one in one step, and waits in that directory until the end. A
/// process that is killed leaves the directory behind. Other programs and other extractions may write in the
/// destination meanwhile: what they make is not undone.
final class DestinationTree {
  private enum Change {
    case madeDirectory([String])
    case madeEntry([String], OpenDirectory.Identity)
    /// An entry was exchanged with a new one of this identity, and is in the staging directory.
    case exchanged([String], OpenDirectory.Identity, backup: String)
    /// An entry was moved to the staging directory, to be replaced.
    case movedAway([String], backup: String)
  }

  /// Maximum number of attempts to replace an entry. Another extraction can take the place after each.
  private static let attemptMax = 16

  /// The absolute path without symbolic links.
  let path: [String]
  private let root: OpenDirectory
  /// The directories above and at the destination that did not exist, from the top.
  private let missing: [URL]
  private var staging: (name: String, directory: OpenDirectory)?
  private var nextNumber = 0
  /// The names in the staging directory.
  private var staged: Set<String> = []
  private var changes: [Change] = []
  /// Whether the file system can exchange two entries in one step, as far as is known.
  private var canExchange: Bool
  /// The open directories on the way to the latest entry.
  private var chain: [(name: String, directory: OpenDirectory)] = []

  /// Creates the directory if it does not exist, and those above it.
  ///
  /// - Parameter canExchange: Whether to exchange entries where the file system can. If `false`, an entry that is
  ///   replaced is moved away first.
  init(_ destination: String, canExchange: Bool = true) throws {
    self.canExchange = canExchange
    let url = URL(fileURLWithPath: destination, isDirectory: true).standardizedFileURL
    var missing: [URL] = []
    var ancestor = url
    while !FileManager.default.fileExists(atPath: ancestor.path), ancestor.pathComponents.count > 1 {
      missing.insert(ancestor, at: 0)
      ancestor.deleteLastPathComponent()
    }
    self.missing = missing
    do {
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
      root = try OpenDirectory(path: url.path)
    } catch {
      Self.remove(missing)
      throw SSZipArchiveErrorCode.failedToWriteFile.error(
        "The destination \(destination) is not a directory and cannot be made one.", underlying: error)
    }
    path = url.resolvingSymlinksInPath().pathComponents.filter { $0 != "/" }
  }

  private static func remove(_ directories: [URL]) {
    for url in directories.reversed() {
      guard let parent = try? OpenDirectory(path: url.deletingLastPathComponent().path) else { return }
      try? parent.removeDirectory(url.lastPathComponent)
    }
  }

  // MARK: - Entries

  /// The kind of an entry, or `nil` if there is none.
  func kind(at path: [String]) throws -> OpenDirectory.Kind? {
    guard let name = path.last else { return .directory }
    do throws(Errno) {
      return try open(path.dropLast(), isMaking: false)?.kind(name)
    } catch {
      throw failure(path, error)
    }
  }

  /// Makes a directory and those above it, unless they exist.
  func makeDirectory(at path: [String]) throws {
    do throws(Errno) {
      _ = try open(path[...], isMaking: true)
    } catch {
      throw failure(path, error)
    }
  }

  /// Creates an empty file that has no place yet.
  ///
  /// - Returns: The file, and its name for `place` and `discard`.
  func stageFile() throws -> (file: OpenFile, name: String) {
    do throws(Errno) {
      let name = makeName()
      return (try stagingDirectory().makeFile(name), name)
    } catch {
      throw failure([], error)
    }
  }

  /// Removes a staged file.
  func discard(_ name: String) {
    try? staging?.directory.removeFile(name)
    staged.remove(name)
  }

  /// Makes a symbolic link.
  ///
  /// - Parameter isReplacing: Whether to replace a file or link at its place.
  /// - Returns: `false` if an entry is there and `isReplacing` is `false`.
  func placeLink(to target: String, at path: [String], isReplacing: Bool) throws -> Bool {
    let name = makeName()
    do throws(Errno) {
      try stagingDirectory().makeLink(name, to: target)
    } catch {
      throw failure(path, error)
    }
    return try place(name, at: path, isReplacing: isReplacing)
  }

  /// Moves a staged file or link to its place.
  ///
  /// - Parameter isReplacing: Whether to replace a file or link there.
  /// - Returns: `false` if an entry is there and `isReplacing` is `false`. The staged file or link is removed then.
  func place(_ source: String, at path: [String], isReplacing: Bool) throws -> Bool {
    guard let name = path.last else { return false }
    do throws(Errno) {
      guard let parent = try open(path.dropLast(), isMaking: true) else { throw Errno.noSuchFile }
      let directory = try stagingDirectory()
      let identity = try directory.identity(source)
      for _ in 0..<Self.attemptMax {
        do throws(Errno) {
          try directory.move(source, to: parent, as: name, isReplacing: false)
          staged.remove(source)
          changes.append(.madeEntry(path, identity))
          return true
        } catch {
          guard error == .fileExists else { throw error }
        }
        if !isReplacing {
          discard(source)
          return false
        }
        if try parent.kind(name) == .directory { throw Errno.isDirectory }
        do throws(Errno) {
          if canExchange, try exchange(source, identity, at: path, in: parent, directory) { return true }
          if !canExchange { try moveAway(name, at: path, in: parent, directory) }
        } catch {
          // Another extraction has moved the entry away.
          guard error == .noSuchFile else { throw error }
        }
      }
      throw Errno.fileExists
    } catch {
      throw failure(path, error)
    }
  }

  /// Exchanges an entry with a staged one.
  ///
  /// - Returns: `false` if the file system cannot do that, which clears `canExchange`.
  private func exchange(
    _ source: String, _ identity: OpenDirectory.Identity, at path: [String], in parent: OpenDirectory,
    _ staging: OpenDirectory
  ) throws(Errno) -> Bool {
    let name = path.last ?? ""
    guard try staging.exchange(source, with: name, in: parent) else {
      canExchange = false
      return false
    }
    // Recorded before the next call can fail: after an error, the exchange is undone.
    changes.append(.exchanged(path, identity, backup: source))
    // Another program may have put a directory there since the look.
    if try staging.kind(source) == .directory { throw .isDirectory }
    return true
  }

  /// Moves an entry to the staging directory.
  private func moveAway(
    _ name: String, at path: [String], in parent: OpenDirectory, _ staging: OpenDirectory
  ) throws(Errno) {
    let backup = makeName()
    try parent.move(name, to: staging, as: backup, isReplacing: false)
    changes.append(.movedAway(path, backup: backup))
  }

  // MARK: - The end

  /// Keeps the created files, and sets the attributes of the created directories.
  func finish(_ attributes: [(path: [String], permissions: UInt32?, modified: Double?)]) {
    removeStaging()
    var made = Set<[String]>()
    for case .madeDirectory(let path) in changes { made.insert(path) }
    for entry in attributes where made.contains(entry.path) {
      guard let directory = try? open(entry.path[...], isMaking: false) else { continue }
      if let permissions = entry.permissions { try? directory.setPermissions(permissions | 0o700) }
      if let modified = entry.modified { try? directory.setModificationTime(modified) }
    }
    changes = []
    chain = []
  }

  /// Undoes everything, as far as the file system permits. A replaced file that cannot be put back stays in the staging
  /// directory.
  ///
  /// - Returns: The error to throw: the cause, or, if files could not be put back, an error that names them and the
  ///   directory, with the cause as its underlying error.
  func rollBack(after cause: any Error) -> any Error {
    var kept: [(backup: String, path: [String])] = []
    for change in changes.reversed() {
      switch change {
      case .madeDirectory(let path): try? open(path.dropLast(), isMaking: false)?.removeDirectory(path.last ?? "")
      case .madeEntry(let path, let identity):
        guard let name = path.last, let parent = try? open(path.dropLast(), isMaking: false),
          (try? parent.identity(name)) == identity
        else { continue }
        try? parent.removeFile(name)
      case .exchanged(let path, let identity, let backup):
        if (try? putBack(backup, inPlaceOf: identity, at: path)) != nil { continue }
        staged.remove(backup)
        kept.append((backup, path))
      case .movedAway(let path, let backup):
        if (try? putBack(backup, at: path)) != nil { continue }
        staged.remove(backup)
        kept.append((backup, path))
      }
    }
    let directory = "/" + (path + [staging?.name ?? ""]).joined(separator: "/")
    changes = []
    chain = []
    removeStaging()
    Self.remove(missing)
    if kept.isEmpty { return cause }
    let listMax = 10
    let list = kept.prefix(listMax).map { "\($0.path.joined(separator: "/")) is \($0.backup)" }
      .joined(separator: ", ")
    return SSZipArchiveErrorCode.failedToWriteFile.error(
      "The extraction failed, and files that it had replaced could not be put back. They are in \(directory): "
        + list + (kept.count > listMax ? " and so on." : "."),
      underlying: (cause as? ArchiveRefusal)?.error ?? cause)
  }

  private func putBack(_ backup: String, at path: [String]) throws(Errno) {
    guard let name = path.last, let staging, let parent = try open(path.dropLast(), isMaking: false) else {
      throw .noSuchFile
    }
    try staging.directory.move(backup, to: parent, as: name, isReplacing: false)
  }

  /// Puts an entry back, in one step if the new one is still in its place.
  private func putBack(
    _ backup: String, inPlaceOf identity: OpenDirectory.Identity, at path: [String]
  ) throws(Errno) {
    guard let name = path.last, let staging, let parent = try open(path.dropLast(), isMaking: false) else {
      throw .noSuchFile
    }
    if (try? parent.identity(name)) == identity, try staging.directory.exchange(backup, with: name, in: parent) {
      // What was in the place is the new entry, which is removed with the staging directory.
      if try staging.directory.identity(backup) == identity { return }
      // Another extraction has put its own entry there since the look.
      _ = try staging.directory.exchange(backup, with: name, in: parent)
      throw .fileExists
    }
    try staging.directory.move(backup, to: parent, as: name, isReplacing: false)
  }

  /// Removes the staging directory, unless files have to stay in it.
  private func removeStaging() {
    guard let staging else { return }
    for name in staged { try? staging.directory.removeFile(name) }
    staged = []
    try? root.removeDirectory(staging.name)
    self.staging = nil
  }

  // MARK: - Directories

  private func stagingDirectory() throws(Errno) -> OpenDirectory {
    if let staging { return staging.directory }
    let name = ".ziparchive-" + String(UInt64.random(in: 0 ... .max), radix: 16)
    try root.makeDirectory(name, permissions: 0o700)
    let directory = try root.directory(name)
    staging = (name, directory)
    return directory
  }

  private func makeName() -> String {
    let name = String(nextNumber)
    nextNumber += 1
    staged.insert(name)
    return name
  }

  /// Opens a directory below the destination.
  ///
  /// - Parameter isMaking: Whether to make directories that do not exist.
  /// - Returns: The directory, or `nil` if it does not exist and `isMaking` is `false`.
  private func open(_ path: ArraySlice<String>, isMaking: Bool) throws(Errno) -> OpenDirectory? {
    var common = 0
    while common < min(chain.count, path.count),
      chain[common].name.utf8.elementsEqual(path[path.startIndex + common].utf8)
    {
      common += 1
    }
    chain.removeSubrange(common...)
    for (index, name) in zip(path.indices, path).dropFirst(common) {
      let parent = chain.last?.directory ?? root
      do throws(Errno) {
        chain.append((name, try parent.directory(name)))
      } catch {
        guard error == .noSuchFile else { throw error }
        guard isMaking else { return nil }
        if try make(name, in: parent) { changes.append(.madeDirectory(Array(path[...index]))) }
        chain.append((name, try parent.directory(name)))
      }
    }
    return chain.last?.directory ?? root
  }

  /// - Returns: `false` if another extraction has made the directory.
  private func make(_ name: String, in parent: OpenDirectory) throws(Errno) -> Bool {
    do throws(Errno) {
      try parent.makeDirectory(name)
      return true
    } catch {
      guard error == .fileExists else { throw error }
      return false
    }
  }

  private func failure(_ path: [String], _ error: Errno) -> NSError {
    let name = path.joined(separator: "/")
    let reason =
      switch error {
      case .notDirectory, .tooManyLinks: "a file or a symbolic link is in the place of a directory"
      case .isDirectory: "a directory is in its place"
      default: "\(error)"
      }
    let underlying = NSError(domain: NSPOSIXErrorDomain, code: Int(error.rawValue))
    return SSZipArchiveErrorCode.failedToWriteFile.error(
      "\(name) cannot be written: \(reason).", underlying: underlying)
  }
}
