/// The names of the files in a journal's directory. A name is a task identifier and a kind.
public struct TransferFileName: Hashable, Sendable {
  public enum Kind: String, Hashable, Sendable, CaseIterable {
    /// The record of the task.
    case record = "task"
    /// A record that is being written.
    case new
    /// The bytes that the task has received.
    case content = "part"
    /// A record that could not be read.
    case damaged
  }

  public var task: Int
  public var kind: Kind

  public init(task: Int, kind: Kind) {
    self.task = task
    self.kind = kind
  }

  /// Parses a name. Returns `nil` for names that no journal gives.
  public init?(_ text: String) {
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
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

  /// The file whose lock the journal's owner holds.
  static let lock = "lock"
}
