import Foundation
import LarkspurIO

extension Directory {
  /// Opens a directory that only its owner may enter. Creates the directory, and those above it, if it does not exist.
  static func ofOwner(at path: String) throws -> Directory {
    do {
      return try Directory(path: path, isCreating: false)
    } catch Errno.noSuchFile {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      return try Directory(path: path, isCreating: false)
    }
  }
}
