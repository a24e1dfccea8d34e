import LarkspurIO

/// The directories of journals, by the XDG Base Directory Specification: below `$XDG_STATE_HOME`, or `~/.local/state`.
public enum TransferLocation {
  /// Returns the directory for state, or `nil` if neither `XDG_STATE_HOME` nor `HOME` is an absolute path.
  ///
  /// - Parameter environment: Returns the value of an environment variable.
  public static func stateHome(
    environment: (String) -> String? = EnvironmentVariable.value(of:)
  ) -> String? {
    if let home = absolute(environment("XDG_STATE_HOME")) { return home }
    return absolute(environment("HOME")).map { $0 + "/.local/state" }
  }

  // The specification says that a relative path is ignored.
  private static func absolute(_ path: String?) -> String? {
    path.flatMap { $0.utf8.first == UInt8(ascii: "/") ? $0 : nil }
  }

  /// Returns the directory with the socket of the user's transfer service: `$XDG_RUNTIME_DIR/larkspur-transfers`, or
  /// `<state home>/larkspur/service` where `XDG_RUNTIME_DIR` is not an absolute path. `nil` if both are missing.
  ///
  /// - Parameter environment: Returns the value of an environment variable.
  public static func service(
    environment: (String) -> String? = EnvironmentVariable.value(of:)
  ) -> String? {
    if let runtime = absolute(environment("XDG_RUNTIME_DIR")) { return runtime + "/larkspur-transfers" }
    return stateHome(environment: environment).map { $0 + "/larkspur/service" }
  }

  /// The name of the service's socket in its directory.
  public static let socket = "socket"
  /// The name of the file in the same directory whose lock the service holds.
  package static let lock = "lock"

  /// Returns `<state home>/larkspur/transfers/<program>/<session>`: the directory of a session that belongs to one
  /// program.
  public static func directory(stateHome: String, program: String, session: String) -> String {
    "\(stateHome)/larkspur/transfers/\(FileName.component(program))/\(FileName.component(session))"
  }

  /// Returns `<state home>/larkspur/groups/<container>/transfers/<session>`: the directory of a session whose
  /// configuration names a shared container.
  public static func directory(stateHome: String, container: String, session: String) -> String {
    "\(stateHome)/larkspur/groups/\(FileName.component(container))/transfers/\(FileName.component(session))"
  }

  /// Whether a path has the form that one of the functions `directory` gives it, below this directory for state. Repeated
  /// slashes count as one.
  public static func isDirectory(_ path: String, stateHome: String) -> Bool {
    guard absolute(path) != nil, absolute(stateHome) != nil else { return false }
    let home: [Substring] = stateHome.split(separator: "/") + ["larkspur"]
    let parts = path.split(separator: "/")
    guard parts.starts(with: home) else { return false }
    let rest = Array(parts.dropFirst(home.count))
    switch rest.first {
    case "transfers" where rest.count == 3: return [rest[1], rest[2]].allSatisfy { FileName.isComponent($0) }
    case "groups" where rest.count == 4 && rest[2] == "transfers":
      return [rest[1], rest[3]].allSatisfy { FileName.isComponent($0) }
    default: return false
    }
  }
}

/// The names of the files in a journal's directory. A name is a task identifier and a kind.
public struct TransferFileName: Hashable, Sendable {
  public enum Kind: String, Hashable, Sendable, CaseIterable {
    /// The record of the task.
    case record = "task"
    /// A record that is being written.
    case new
    /// The bytes that the task has received.
    case content = "part"
    /// The bytes of a download in segments, and the record of which of them are there (`DownloadStore`).
    case segments = "part.larkspur-part"
    case segmentRecord = "part.larkspur-download"
    case newSegmentRecord = "part.larkspur-download.new"
    /// A record that could not be read.
    case damaged

    /// The kinds of files with received bytes. The record of segments goes before the bytes that it counts.
    static let contents: [Kind] = [.content, .newSegmentRecord, .segmentRecord, .segments]
  }

  public var task: Int
  public var kind: Kind

  public init(task: Int, kind: Kind) {
    self.task = task
    self.kind = kind
  }

  /// Parses a name. Returns `nil` for names that no journal gives.
  public init?(_ text: String) {
    let parts = text.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    // The longest identifier, `TransferRecord.taskMax`, has ten digits.
    guard parts.count == 2, 1...10 ~= parts[0].count, let task = Int(Substring(parts[0])),
      1...TransferRecord.taskMax ~= task, let kind = Kind(rawValue: String(Substring(parts[1])))
    else { return nil }
    self.init(task: task, kind: kind)
    // One identifier has one name: no sign, and no zeros before it.
    guard self.text == text else { return nil }
  }

  public var text: String { "\(task).\(kind.rawValue)" }

  /// The name of the file with the bytes that a task has received.
  public static func content(of task: Int) -> String { TransferFileName(task: task, kind: .content).text }

  /// The names of all files with bytes that a task has received.
  public static func contents(of task: Int) -> [String] {
    Kind.contents.map { TransferFileName(task: task, kind: $0).text }
  }

  /// The file whose lock the journal's owner holds.
  static let lock = "lock"
}
