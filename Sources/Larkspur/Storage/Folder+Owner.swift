import Foundation
import LarkspurIO

extension Folder {
  /// A folder that only its owner may enter. It is made, with those above it, if it is not there.
  static func ofOwner(at path: String) throws -> Folder {
    do {
      return try Folder(path: path, isCreating: false)
    } catch Errno.noSuchFile {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      return try Folder(path: path, isCreating: false)
    }
  }
}
