import LarkspurIO

/// The place of a background download's file: a name in an open directory in which no other user can replace entries.
///
/// The file may come hours after the command that asks for it, in another process. Therefore the path has no symbolic
/// links: links that the user has made are followed when the command begins, and later links are not followed.
struct DeliveryPlace {
  /// The absolute path of the file.
  let path: String
  private let directory: OpenDirectory
  private let name: String

  /// Opens the directory of a path that an earlier command has found.
  init(_ path: String) throws(DirectoryRefusal) {
    self.path = path
    name = FilePaths.name(of: path)
    let folder = FilePaths.directory(of: path)
    directory = try .guarded(at: folder.isEmpty ? "/" : folder)
  }

  /// Returns the path without symbolic links for a path of the command line.
  ///
  /// - Throws: `invalidArgument` or `isDirectory` for anything but a regular file, or a name without a file.
  static func path(of output: String) throws(Errno) -> String {
    guard let place = try FilePlace(output) else { throw .invalidArgument }
    let name = FilePaths.name(of: place.path)
    guard !name.isEmpty else { throw .isDirectory }
    let folder = try FilePaths.resolved(FilePaths.directory(of: place.path) + "/")
    return folder == "/" ? "/\(name)" : "\(folder)/\(name)"
  }

  /// Moves a file to the place in one step, so that a process that is killed at any moment leaves it at one of the two
  /// places. Replaces a regular file or a symbolic link there.
  ///
  /// - Parameter file: The path of a file of the user in a directory of the user alone.
  func take(_ file: String) throws(Errno) {
    // The journal's files are readable by their owner only.
    let permissions = try permissions()
    try OpenFile(updatingRegular: file).setPermissions(permissions)
    do throws(Errno) {
      return try directory.moveIn(file, as: name)
    } catch .crossesFileSystems {
      try copy(file, permissions)
    }
  }

  private func permissions() throws(Errno) -> UInt32 {
    switch try directory.kind(name) {
    case .regularFile: try directory.permissions(name) ?? FilePaths.creationPermissions()
    case nil, .symbolicLink: FilePaths.creationPermissions()
    case .directory: throw .isDirectory
    case .other: throw .invalidArgument
    }
  }

  /// Copies the file. What is at the path stays until all bytes are there.
  private func copy(_ file: String, _ permissions: UInt32) throws(Errno) {
    let part = name + ".larkspur-part"
    // A killed process may have left a part.
    try? directory.removeFile(part)
    let copy = try directory.makeFile(part, permissions: 0o600)
    do throws(Errno) {
      try copy.write(contentsOf: OpenFile(readingRegular: file))
      try copy.setPermissions(permissions)
      try copy.sync()
      try directory.move(part, to: directory, as: name, isReplacing: true)
    } catch {
      try? directory.removeFile(part)
      throw error
    }
  }
}
