import Foundation
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// The partial files of downloads that may be continued: a directory of this user's beneath the temporary directory,
/// so that a download's file moves there without being copied. The directory outlives the process.
///
/// The directory also has the files of running downloads that need a name. Their process holds a lock on each of them, so
/// a file without a lock belongs to a process that has ended.
///
/// Beside the files lies the key of the authentication codes of resume data. Only this user can read the key.
///
/// All functions block their thread. They are called when a download stops or resumes, not for each piece.
struct PartialFiles: Sendable {
  /// The temporary directory.
  let temporary: String
  let path: String

  init(in temporary: String, name: String = "larkspur-downloads-\(geteuid())") {
    self.temporary = temporary
    path = temporary + "/" + name
  }

  /// The directory of the user that runs the program.
  static var standard: PartialFiles { PartialFiles(in: FileManager.default.temporaryDirectory.path) }

  /// Maximum age of a partial file, in days. Resume data that was thrown away must not fill the disk for ever.
  static let daysMax = 7
  /// Maximum number of partial files; the oldest are removed first. The limit stops a server that breaks off every
  /// download from filling the disk with small files.
  static let filesMax = 1_000

  private static let keyName = "key"
  private static let keyBytes = 32
  private static let suffix = ".part"
  private static let liveSuffix = ".tmp"

  /// Whether a name consists of letters, digits, hyphens and our suffix, so that no name leads out of the directory.
  static func isName(_ name: String) -> Bool {
    guard name.hasSuffix(suffix), 1...64 ~= name.utf8.count - suffix.utf8.count else { return false }
    return name.dropLast(suffix.count).utf8.allSatisfy { $0.isASCIILetter || 0x30...0x39 ~= $0 || $0 == 0x2D }
  }

  private func directory(isCreating: Bool) -> Directory? { try? Directory(path: path, isCreating: isCreating) }

  // MARK: - The key

  /// - Returns: The key, or `nil` if there is no key and it cannot be created.
  func key(isCreating: Bool) -> [UInt8]? {
    guard let directory = directory(isCreating: isCreating) else { return nil }
    if let key = Self.readKey(directory) { return key }
    guard isCreating else { return nil }
    let temporary = "\(UUID().uuidString).new"
    do throws(Errno) {
      let file = try directory.create(temporary)
      var generator = SystemRandomNumberGenerator()
      let key = (0..<Self.keyBytes).map { _ in UInt8.random(in: 0...255, using: &generator) }
      try file.write(key.span)
      // If several processes make a key at once, the first one's key counts for all.
      try directory.renameNew(temporary, to: Self.keyName)
    } catch {
      try? directory.remove(temporary)
    }
    return Self.readKey(directory)
  }

  private static func readKey(_ directory: Directory) -> [UInt8]? {
    guard let key = try? directory.read(keyName, atMost: keyBytes + 1), key.count == keyBytes else { return nil }
    return key
  }

  // MARK: - The files

  /// Keeps a download's file for later.
  ///
  /// - Returns: The resume data, or `nil` if the file cannot be kept; the file is left as it is then.
  func keep(_ file: DownloadFile, of request: URLRequest, at point: ResumePoint) -> Data? {
    let name = UUID().uuidString + Self.suffix
    guard let data = ResumeData(request, point, fileName: name), let key = key(isCreating: true),
      let encoded = data.encoded(key: key), let directory = directory(isCreating: true)
    else { return nil }
    sweep(directory, now: Date())
    do throws(Errno) {
      try file.move(into: directory, as: name)
    } catch {
      return nil
    }
    return encoded
  }

  // MARK: - Downloads in segments

  /// Returns the path of a new destination for a download in segments, whose files `DownloadStore` creates beside it.
  ///
  /// - Returns: `nil` if the directory cannot be used.
  func newSegmentsPath() -> String? {
    directory(isCreating: true).map { _ in "\(path)/\(UUID().uuidString)\(Self.suffix)" }
  }

  func segmentsPath(of data: ResumeData) -> String? {
    guard Self.isName(data.fileName), directory(isCreating: false) != nil else { return nil }
    return "\(path)/\(data.fileName)"
  }

  /// - Returns: The resume data, or `nil` if a later download cannot continue from the files.
  func keepSegments(at path: String, of request: URLRequest, at point: ResumePoint) -> Data? {
    guard let key = key(isCreating: true), let directory = directory(isCreating: true) else { return nil }
    sweep(directory, now: Date())
    let name = FilePaths.name(of: path)
    return ResumeData(request, point, fileName: name, isSegmented: true)?.encoded(key: key)
  }

  /// Removes what a download in segments has left.
  func removeSegments(at path: String) {
    guard let directory = directory(isCreating: false) else { return }
    let name = FilePaths.name(of: path)
    for name in DownloadStore.namesBeside(name) + [name] { try? directory.remove(name) }
  }

  /// - Returns: The open file, or `nil` if it is gone or has changed.
  func open(_ data: ResumeData) -> OpenFile? {
    guard Self.isName(data.fileName), let directory = directory(isCreating: false) else { return nil }
    return try? directory.openPart(data.fileName, size: data.point.offset)
  }

  /// Moves a partial file to a download.
  ///
  /// - Returns: `false` if the file cannot be moved, for example because another download has taken it.
  func moveOut(_ data: ResumeData, to url: URL) -> Bool {
    guard Self.isName(data.fileName), let directory = directory(isCreating: false) else { return false }
    do throws(Errno) {
      try directory.moveOut(data.fileName, to: url.path)
      return true
    } catch {
      return false
    }
  }

  func remove(_ data: ResumeData) {
    guard Self.isName(data.fileName), let directory = directory(isCreating: false) else { return }
    try? directory.remove(data.fileName)
  }

  // MARK: - The files of running downloads

  /// Returns the path of a new file in the temporary directory itself.
  func freshURL() -> URL {
    URL(fileURLWithPath: "\(temporary)/LarkspurDownload_\(UUID().uuidString)\(Self.liveSuffix)", isDirectory: false)
  }

  /// Creates the file of a running download.
  ///
  /// - Returns: `nil` if the directory cannot be used.
  func makeLive() -> (URL, OpenFile)? {
    let (name, url) = freshLive()
    guard let directory = liveDirectory(), let file = try? directory.createLocked(name) else { return nil }
    return (url, file)
  }

  /// Gives the file of a running download a name.
  ///
  /// - Returns: `nil` if the directory cannot be used.
  func link(_ file: OpenFile) -> URL? {
    let (name, url) = freshLive()
    guard let directory = liveDirectory(), (try? file.lock()) == true, (try? directory.link(file, as: name)) != nil
    else {
      return nil
    }
    return url
  }

  /// Makes a partial file the file of a running download.
  ///
  /// - Parameter part: The open partial file.
  /// - Returns: `nil` if another download has taken it.
  func take(_ data: ResumeData, _ part: OpenFile) -> DownloadFile? {
    let (name, url) = freshLive()
    guard Self.isName(data.fileName), let directory = directory(isCreating: false), (try? part.lock()) == true,
      (try? directory.rename(data.fileName, to: name)) != nil
    else { return nil }
    return DownloadFile(url, continuing: part, in: self)
  }

  private func freshLive() -> (name: String, url: URL) {
    let name = UUID().uuidString + Self.liveSuffix
    return (name, URL(fileURLWithPath: "\(path)/\(name)", isDirectory: false))
  }

  private static let hasSwept = Atomic(false)

  /// Opens the directory. The process's first call removes what dead processes have left.
  private func liveDirectory() -> Directory? {
    let directory = directory(isCreating: true)
    if let directory, !Self.hasSwept.exchange(true, ordering: .relaxed) { sweep(directory, now: Date()) }
    return directory
  }

  // MARK: - The end of files

  func sweep(now: Date) {
    guard let directory = directory(isCreating: false) else { return }
    sweep(directory, now: now)
  }

  private func sweep(_ directory: Directory, now: Date) {
    guard let files = try? directory.list() else { return }
    for file in files where file.name.hasSuffix(Self.liveSuffix) { removeDead(file.name, directory) }
    let now = now.timeIntervalSince1970
    let oldest = now - Double(Self.daysMax) * 86_400
    let parts = files.filter { $0.name != Self.keyName && !$0.name.hasSuffix(Self.liveSuffix) }
      .sorted { $0.changedTime > $1.changedTime }
    // The clock was ahead: without this, such a file would stay until the clock is there again.
    for file in parts where file.changedTime > now { try? directory.setTimes(file.name, used: nil, changed: now) }
    for (index, file) in parts.enumerated() where file.changedTime < oldest || index >= Self.filesMax - 1 {
      // The part of a download in segments is locked while the download runs.
      if file.name.hasSuffix(DownloadStore.partName("")) {
        removeDead(file.name, directory)
      } else {
        try? directory.remove(file.name)
      }
    }
  }

  /// Removes the file of a download whose process has ended.
  private func removeDead(_ name: String, _ directory: Directory) {
    guard let lock = try? directory.lock(name) else { return }
    try? directory.remove(name)
    withExtendedLifetime(lock) {}
  }
}
