import Foundation
import Testing
import ZipArchive

/// Extracts an archive into `out` of the room.
///
/// - Returns: The error, or `nil`.
func extract(
  _ archive: ArchiveBytes, in room: Room, overwrite: Bool = true, limits: SSZipArchiveLimits = SSZipArchiveLimits()
) throws -> NSError? {
  try extract(room.write("made.zip", archive.data), in: room, overwrite: overwrite, limits: limits)
}

func extract(
  _ path: String, in room: Room, overwrite: Bool = true, nestedZipLevel: Int = 0, password: String? = nil,
  limits: SSZipArchiveLimits = SSZipArchiveLimits()
) -> NSError? {
  do {
    try SSZipArchive.unzipFile(
      atPath: path, toDestination: room.path("out"), overwrite: overwrite, nestedZipLevel: nestedZipLevel,
      password: password, limits: limits)
    return nil
  } catch {
    return error as NSError
  }
}

extension NSError {
  /// The code, if the error is about an archive.
  var archiveCode: SSZipArchiveErrorCode? {
    domain == SSZipArchiveErrorDomain ? SSZipArchiveErrorCode(rawValue: code) : nil
  }
}
