import Foundation
import LarkspurBytes
import LarkspurIO

/// Where the body goes: standard output, or a file that takes its name only when it is complete.
///
/// A regular file is written under a temporary name beside the one that is asked for, and renamed at the end. So
/// nobody ever sees half of it, and a transfer that fails leaves what was there before. What is no regular file
/// (`/dev/null`, a named pipe) is written directly.
final class FileOutput {
  private struct Replacement {
    var temporaryPath: String
    var path: String
  }

  /// For messages.
  let name: String
  private var file: OpenFile?
  private let isStandard: Bool
  private var replacement: Replacement?
  /// Whether its progress is worth showing: the bytes go where nobody sees them come.
  let isFile: Bool

  private let deadline: Deadline
  /// Set for a file that is gone on with: how far it was.
  private(set) var offset: Int?
  /// Keeps the descriptor open.
  private var appended: FileHandle?

  /// Nil: standard output. `deadline` is for all writes. `isPrivate`: a new file is its owner's alone.
  init(path: String?, deadline: Deadline, isPrivate: Bool = false) throws(CommandFailure) {
    self.deadline = deadline
    isStandard = path == nil
    guard let path else {
      name = "standard output"
      file = .standardOutput
      isFile = OpenFile.standardOutput.isRegularFile
      return
    }
    name = path
    isFile = true
    do throws(Errno) {
      switch try FilePaths.kind(of: path) {
      // A link stays one: what it points at is created, or replaced.
      case nil: try create(for: try FilePaths.destination(of: path), permissions: isPrivate ? 0o600 : nil)
      case .regularFile(let mode): try create(for: try FilePaths.resolved(path), permissions: mode)
      case .directory: throw .isDirectory
      case .other: file = try OpenFile(overwriting: path)
      }
    } catch {
      throw CommandFailure(.writeFailed, "could not create \(path): \(error)")
    }
  }

  /// Goes on behind what the file holds, or creates it. It is written in place: what has come stays, whatever happens.
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
      offset = Int(clamping: try handle.seekToEnd())
      appended = handle
      file = OpenFile(lent: handle.fileDescriptor)
    } catch let failure as CommandFailure {
      throw failure
    } catch {
      throw CommandFailure(.writeFailed, "could not open \(path): \(error)")
    }
  }

  private func create(for path: String, permissions: UInt32?) throws(Errno) {
    // A name that is taken is somebody else's: try another.
    for attempt in 1... {
      let suffix = String(UInt64.random(in: 0...(.max)), radix: 36)
      let temporaryPath = "\(Self.stem(of: path)).\(suffix).part"
      do throws(Errno) {
        let file = try OpenFile(creating: temporaryPath)
        self.file = file
        replacement = Replacement(temporaryPath: temporaryPath, path: path)
        if let permissions { try? file.setPermissions(permissions) }
        return
      } catch {
        guard error == .fileExists, attempt < 100 else { throw error }
      }
    }
  }

  /// The path, or the folder and a part of the name: with a suffix it may have no more than 255 bytes.
  private static func stem(of path: String) -> Substring {
    let name = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8.index(after: $0) } ?? path.startIndex
    guard path.utf8.distance(from: name, to: path.endIndex) > 200 else { return path[...] }
    // (Of a character that is cut in two the rest goes.)
    return path[..<name] + path[name...].prefix(50)
  }

  func write(_ bytes: Span<UInt8>) throws(CommandFailure) {
    guard let file else { return }
    do throws(Errno) {
      try file.write(bytes, until: deadline)
    } catch {
      switch error {
      // Whoever reads a pipe may stop when they have enough, as `head` does.
      case .brokenPipe where isStandard, .interrupted: throw CommandFailure(.writeFailed)
      case .timedOut where deadline != .never:
        throw CommandFailure(.timedOut, "timed out while writing to \(name) (--max-time)")
      default: throw CommandFailure(.writeFailed, "could not write to \(name): \(error)")
      }
    }
  }

  /// The transfer is complete: the file takes its name.
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

  /// The transfer has failed: what was there before stays, and nothing else.
  func abandon() {
    file = nil
    guard let replacement else { return }
    self.replacement = nil
    try? FilePaths.remove(replacement.temporaryPath)
  }
}
