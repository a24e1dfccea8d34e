import Foundation
import LarkspurBytes
import LarkspurConsole
import LarkspurIO

/// The destination of the body: standard output, or a file that gets its name only when it is complete.
///
/// A regular file is written under a temporary name in its directory, and renamed at the end. So the file is never
/// visible half-written, and a failed transfer leaves the earlier content. Anything else (`/dev/null`, a named pipe) is
/// written directly.
final class FileOutput {
  /// The name in messages.
  let name: String
  private var file: OpenFile?
  private let isStandard: Bool
  /// Whether the bytes go to a terminal, which null bytes may disturb.
  private var isGuarded = false
  private var replacement: (temporaryPath: String, path: String)?
  /// Whether to show the progress, because the bytes do not appear on the terminal.
  let isFile: Bool

  private let deadline: Deadline
  /// The bytes of a file that is continued, or `nil` if the file is replaced.
  private(set) var kept: Kept?
  /// The owner of the descriptor that `file` borrows.
  private var appended: FileHandle?

  /// The bytes that a file to continue has at the start.
  struct Kept {
    var count = 0
    /// The validator of their version: empty if the server sent no validator, and `nil` if another program has written
    /// them.
    var version: String?

    /// The first byte to ask for without a condition. Bytes of a known version are continued by `FilePart`.
    var offset: Int { version == nil ? count : 0 }
  }

  /// The attribute of a file that has the version of its bytes. A file that is complete keeps it: the next command has to
  /// recognize another version as well.
  private static let versionAttribute = "user.larkspur.version"
  private static let versionBytesMax = 1 << 10

  /// Opens the destination.
  ///
  /// - Parameters:
  ///   - path: The file, or `nil` for standard output.
  ///   - deadline: The deadline of all writes.
  ///   - isPrivate: Whether a new file is readable and writable by its owner only.
  ///   - allowsAnyBytes: Whether null bytes may go to a terminal.
  init(
    path: String?, deadline: Deadline, isPrivate: Bool = false, allowsAnyBytes: Bool = false
  ) throws(CommandFailure) {
    self.deadline = deadline
    isStandard = path == nil
    guard let path else {
      name = "standard output"
      file = .standardOutput
      isFile = OpenFile.standardOutput.isRegularFile
      isGuarded = !allowsAnyBytes && OpenFile.standardOutput.isTerminal
      return
    }
    name = path
    isFile = true
    do throws(Errno) {
      if let place = try FilePlace(path) {
        try create(for: place.path, permissions: place.permissions ?? (isPrivate ? 0o600 : nil))
      } else {
        file = try OpenFile(overwriting: path)
      }
    } catch {
      throw CommandFailure(.writeFailed, "could not create \(path): \(error)")
    }
  }

  /// Opens a file to append to it, or creates it. The bytes are written in place and stay, even if the transfer fails.
  init(goingOnWith path: String, deadline: Deadline) throws(CommandFailure) {
    self.deadline = deadline
    isStandard = false
    name = path
    isFile = true
    do {
      switch try FilePaths.kind(of: path) {
      case nil: _ = try OpenFile(creating: try FilePaths.destination(of: path))
      case .regularFile: break
      case .directory: throw Errno.isDirectory
      case .other: throw CommandFailure(.writeFailed, "\(path) is no file that could be gone on with")
      }
      let handle = try FileHandle(forUpdating: URL(filePath: path))
      let file = OpenFile(lent: handle.fileDescriptor)
      kept = Kept(count: Int(clamping: try handle.seekToEnd()), version: Self.version(of: file))
      if kept?.count == 0 { kept?.version = "" }
      appended = handle
      self.file = file
    } catch let failure as CommandFailure {
      throw failure
    } catch {
      throw CommandFailure(.writeFailed, "could not open \(path): \(error)")
    }
  }

  private static func version(of file: OpenFile) -> String? {
    guard let bytes = file.attribute(versionAttribute, atMost: versionBytesMax) else { return nil }
    // What no field can have is no version, and the file begins anew.
    return bytes.allSatisfy { 0x20..<0x7f ~= $0 } ? String(decoding: bytes, as: UTF8.self) : ""
  }

  /// Notes the version of the bytes that follow in a file that can be continued.
  ///
  /// - Parameter version: The validator, or `nil` if there is none.
  func note(version: String?) {
    // Bytes of another program stay of an unknown version, until a server names one.
    guard let kept, let file, let version = version ?? kept.version.map({ _ in "" }) else { return }
    do throws(Errno) {
      guard version.utf8.count <= Self.versionBytesMax else { throw .invalidArgument }
      try file.setAttribute(Self.versionAttribute, to: version)
    } catch {
      Console.complain(
        "warning: the version of \(name) cannot be noted (\(error)): compare a checksum if it is resumed")
    }
  }

  private func create(for path: String, permissions: UInt32?) throws(Errno) {
    let suffix = String(UInt64.random(in: 0...(.max)), radix: 36)
    let temporaryPath = "\(Self.stem(of: path)).\(suffix).part"
    let file = try OpenFile(creating: temporaryPath)
    self.file = file
    replacement = (temporaryPath, path)
    if let permissions { try? file.setPermissions(permissions) }
  }

  /// Returns the path without the temporary suffix. A name of more than 200 bytes is cut to 50 characters, because a
  /// name with the suffix may have at most 255 bytes.
  private static func stem(of path: String) -> Substring {
    let name = FilePaths.name(of: path)
    return name.utf8.count > 200 ? Substring(path.utf8.dropLast(name.utf8.count)) + name.prefix(50) : path[...]
  }

  func write(_ bytes: Span<UInt8>) throws(CommandFailure) {
    guard let file else { return }
    if isGuarded, bytes.indices.contains(where: { bytes[$0] == 0 }) {
      throw CommandFailure(
        .writeFailed, "the body is binary, and could disturb the terminal (-o FILE saves it, -o - shows it anyway)")
    }
    do throws(Errno) {
      try file.write(bytes, until: deadline)
    } catch {
      switch error {
      // The reader of a pipe may stop early, as `head` does.
      case .brokenPipe where isStandard, .interrupted: throw CommandFailure(.writeFailed)
      case .timedOut where deadline != .never:
        throw CommandFailure(.timedOut, "timed out while writing to \(name) (--max-time)")
      default: throw CommandFailure(.writeFailed, "could not write to \(name): \(error)")
      }
    }
  }

  /// Whether the bytes that were written can be dropped.
  var canStartOver: Bool { replacement != nil || kept?.version != nil }

  /// Drops the bytes that were written.
  func startOver() throws(CommandFailure) {
    do {
      try appended?.truncate(atOffset: 0)
      if let replacement { file = try OpenFile(overwriting: replacement.temporaryPath) }
    } catch {
      throw CommandFailure(.writeFailed, "could not write to \(name): \(error)")
    }
  }

  /// Gives the file its name. Called when the transfer is complete.
  func commit() throws(CommandFailure) {
    file = nil
    guard let replacement else { return }
    do throws(Errno) {
      try FilePaths.rename(replacement.temporaryPath, to: replacement.path)
      self.replacement = nil
    } catch {
      abandon()
      throw CommandFailure(
        .writeFailed, "could not rename \(replacement.temporaryPath) to \(replacement.path): \(error)")
    }
  }

  /// Removes the temporary file. Called when the transfer has failed; the earlier content stays.
  func abandon() {
    file = nil
    guard let replacement else { return }
    self.replacement = nil
    try? FilePaths.remove(replacement.temporaryPath)
  }
}
