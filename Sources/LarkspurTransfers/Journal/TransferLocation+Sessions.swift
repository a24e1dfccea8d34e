import LarkspurIO

extension TransferLocation {
  /// The sessions that have a file below a directory for state.
  public struct Sessions: Sendable {
    public var sessions: [TransferSession] = []
    /// The directories whose session cannot be read, with the reasons.
    public var problems: [(directory: String, reason: TransferJournalError)] = []
  }

  /// Maximum number of directories that are looked at. The limit stops a tree that another program fills.
  public static let directoriesMax = 10_000

  /// Returns the sessions of all programs and shared containers, in the order of their directories. Names are untrusted:
  /// symbolic links are not followed, and directories without a session's file are passed over.
  ///
  /// - Throws: The error of listing `<state home>/larkspur`. A directory that does not exist has no sessions.
  public static func sessions(
    stateHome: String, directoriesMax: Int = directoriesMax
  ) throws(Errno) -> Sessions {
    var found = Sessions()
    let root = "\(stateHome)/larkspur"
    let top: OpenDirectory
    do throws(Errno) {
      top = try OpenDirectory(path: root)
    } catch .noSuchFile {
      return found
    }
    var left = directoriesMax
    var directories: [String] = []
    for (program, directory) in try children(of: top, "transfers", root, &left) {
      directories += names(in: directory, &left).map { "\(program)/\($0)" }
    }
    for (container, directory) in try children(of: top, "groups", root, &left) {
      guard let transfers = try? directory.directory("transfers") else { continue }
      directories += names(in: transfers, &left).map { "\(container)/transfers/\($0)" }
    }
    for directory in directories.sorted() {
      do throws(TransferJournalError) {
        if let session = try TransferSessionFile.read(in: directory) { found.sessions.append(session) }
      } catch {
        found.problems.append((directory, error))
      }
    }
    if left < 0 { found.problems.append((root, .crowded(directoriesMax: directoriesMax))) }
    return found
  }

  /// Opens the directories in a directory.
  private static func children(
    of top: OpenDirectory, _ name: String, _ root: String, _ left: inout Int
  ) throws(Errno) -> [(path: String, directory: OpenDirectory)] {
    let parent: OpenDirectory
    do throws(Errno) {
      parent = try top.directory(name)
    } catch .noSuchFile {
      return []
    }
    return names(in: parent, &left).compactMap { child in
      (try? parent.directory(child)).map { ("\(root)/\(name)/\(child)", $0) }
    }
  }

  /// The names of the directories in a directory, without links.
  private static func names(in directory: OpenDirectory, _ left: inout Int) -> [String] {
    var names: [String] = []
    for name in ((try? directory.names()) ?? []).sorted() where left >= 0 {
      left -= 1
      if left >= 0, (try? directory.kind(name)) == .directory { names.append(name) }
    }
    return names
  }
}
