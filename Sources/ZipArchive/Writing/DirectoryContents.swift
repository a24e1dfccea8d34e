import Foundation
import LarkspurIO

extension ArchiveWriter {
  /// Adds the contents of a directory, sorted by name.
  ///
  /// - Parameters:
  ///   - directory: The directory. Links in its path are followed.
  ///   - keepsParent: Whether the names of the entries begin with the directory's own name.
  ///   - keepsLinks: If `true`, each symbolic link is added as a link. If `false` or `nil`, a link to a regular file is
  ///     added as the file; all other links are left out (`false`), or added as links (`nil`).
  ///   - leaveOut: Called with the path of each entry that is left out, and with the reason.
  func addContents(
    of directory: String, keepsParent: Bool, keepsLinks: Bool?, _ coding: Coding,
    leaveOut: (String, ArchiveRefusal) -> Void
  ) throws {
    let url = URL(fileURLWithPath: directory, isDirectory: true).standardizedFileURL
    let own = URL(fileURLWithPath: path).standardizedFileURL.resolvingSymlinksInPath().path
    let root: String
    let names: [String]
    do {
      root = try FilePaths.resolved(url.path)
      names = try FileManager.default.subpathsOfDirectory(atPath: root)
    } catch {
      throw SSZipArchiveErrorCode.fileContentNotReadable.error(
        "The directory \(directory) cannot be read.", underlying: error)
    }
    if names.isEmpty, keepsParent { return try addDirectory(root, named: url.lastPathComponent) }
    let prefix = keepsParent ? url.lastPathComponent + "/" : ""
    for name in names.sorted() {
      let file = root + "/" + name
      // An archive that is replaced is not a part of itself.
      if URL(fileURLWithPath: file).resolvingSymlinksInPath().path == own { continue }
      do {
        try add(file, named: prefix + name, keepsLinks, coding)
      } catch let refusal as ArchiveRefusal where refusal.leavesOutEntry {
        leaveOut(file, refusal)
      }
    }
  }

  private func add(_ file: String, named name: String, _ keepsLinks: Bool?, _ coding: Coding) throws {
    let manager = FileManager.default
    switch (try? manager.attributesOfItem(atPath: file))?[.type] as? FileAttributeType {
    case .typeDirectory?:
      // Directories with contents need no entries.
      if (try? manager.contentsOfDirectory(atPath: file))?.isEmpty ?? false { try addDirectory(file, named: name) }
    case .typeSymbolicLink? where keepsLinks == true || !Self.leadsToFile(file):
      if keepsLinks == false { throw ArchiveRefusal(.linkWithoutFile, name) }
      try addLink(file, named: name, coding)
    case .typeRegular?, .typeSymbolicLink?, nil:
      try addFile(file, named: name, coding)
    default:
      throw ArchiveRefusal(.specialFile, name)
    }
  }

  private static func leadsToFile(_ link: String) -> Bool {
    if case .regularFile? = try? FilePaths.kind(of: link) { true } else { false }
  }
}
