import LarkspurBytes
import LarkspurIO

/// The file `session` in a journal's directory: all that a service needs to continue the session without its program.
///
/// The file has a `RecordEnvelope` and is replaced as a whole, like the records of tasks. The settings contain secrets;
/// the file's mode is 0600.
public enum TransferSessionFile {
  /// The version of the format. Every change of the parts or of their meaning gets a new one.
  public static let formatVersion: UInt32 = 3
  package static let envelope = RecordEnvelope(name: "LKTP", version: formatVersion)
  static let name = "session"
  static let new = "session.new"
  /// Maximum size of the file in bytes.
  static let bytesMax = TransferSession.settingsBytesMax + (128 << 10)

  /// Writes the file, unless it has this content already. The owner of the session's journal calls this.
  ///
  /// - Throws: `record` if the session is not valid; `unavailable`, `unwritten`, `unsynced`.
  public static func write(_ session: TransferSession) throws(TransferJournalError) {
    let files = Result { () throws(Errno) in try DirectoryTransferFiles(path: session.directory) }
    try write(session, to: files.mapError(TransferJournalError.unavailable).get())
  }

  static func write(_ session: TransferSession, to files: any TransferFiles) throws(TransferJournalError) {
    let bytes = try Result { () throws(TransferValueError) in try encoded(session) }
      .mapError(TransferJournalError.record).get()
    if (try? files.read(name, atMost: bytesMax + 1)) == bytes { return }
    do throws(Errno) {
      try files.replace(name, by: bytes, new: new)
    } catch {
      throw .unwritten(error)
    }
    do throws(Errno) { try files.sync() } catch { throw .unsynced(error) }
  }

  /// Reads the file in a directory. The file is untrusted. A directory that is a symbolic link is refused.
  ///
  /// - Returns: The session, or `nil` if the directory has no such file.
  /// - Throws: `record` if the file is damaged or of another version; `unavailable`.
  public static func read(in directory: String) throws(TransferJournalError) -> TransferSession? {
    let bytes: [UInt8]
    do throws(Errno) {
      bytes = try Directory(path: directory, isCreating: false).read(name, atMost: bytesMax + 1)
    } catch .noSuchFile {
      return nil
    } catch {
      throw .unavailable(error)
    }
    return try Result { () throws(TransferValueError) in try decoded(bytes, directory: directory) }
      .mapError(TransferJournalError.record).get()
  }

  /// All of a session but its directory, in which the file is.
  private struct Content: TransferValue {
    var identifier: String
    var settings: [UInt8]
    var launchCommand: [String]

    init(_ session: TransferSession) {
      (identifier, settings, launchCommand) = (session.identifier, session.settings, session.launchCommand)
    }

    var invalidPart: String? { session(in: "/").invalidPart }

    func session(in directory: String) -> TransferSession {
      TransferSession(
        identifier: identifier, directory: directory, settings: settings, launchCommand: launchCommand)
    }
  }

  /// Returns the bytes of the file.
  ///
  /// - Throws: `invalid`.
  package static func encoded(_ session: TransferSession) throws(TransferValueError) -> [UInt8] {
    envelope.wrapped(try Content(session).bytes())
  }

  /// Reads the bytes of the file, which are untrusted.
  ///
  /// - Throws: `otherVersion`, `damaged`, `tooLarge`.
  package static func decoded(_ file: [UInt8], directory: String) throws(TransferValueError) -> TransferSession {
    guard file.count <= bytesMax else { throw .tooLarge(file.count, max: bytesMax) }
    return try Content(bytes: TransferValueError.content(of: file, envelope)).session(in: directory)
  }
}
