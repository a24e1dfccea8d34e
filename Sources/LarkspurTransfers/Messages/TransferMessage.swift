import LarkspurBytes

/// All that a program and the transfer service say to each other.
///
/// A program's first message is `open` or `administer`. The service answers with `refused`, which ends the connection,
/// or with any number of `records` and then `opened`. After that, commands go one way and notices the other.
///
/// In all versions of the protocol, a message begins with four bytes of a name and four of the version. The rest has the
/// form of `TransferEncoder`.
package enum TransferMessage: Codable, Hashable, Sendable {
  /// The version of the protocol. Every change of a message or of its meaning gets a new one.
  static let version: UInt32 = 6
  static let name: [UInt8] = Array("LKTS".utf8)

  /// Asks for a session.
  case open(TransferSession)
  /// Asks for something that concerns all sessions of the user, or the tasks of one.
  case administer(TransferAdministration)
  case command(TransferCommand)
  /// Asks for `flushed` with this number, once all commands before have been carried out and are on the disk. Numbers
  /// grow.
  case flush(UInt64)

  case refused(TransferLinkError)
  /// A part of the session's tasks.
  case records([TransferRecord])
  /// All tasks have been sent.
  case opened
  case notice(TransferNotice)
  /// The answer to `flush`, for this number and all before.
  case flushed(UInt64)
  /// A session that the service carries out. Its tasks follow in `records`.
  case serves(TransferServedSession)
  /// The answer to `administer` is complete.
  case done(count: Int)
}

extension TransferMessage {
  /// Returns the message as the bytes of a frame.
  ///
  /// - Throws: `invalid`, `tooLarge`. `notice(.lost)` is not valid: the program's side makes that notice.
  package func encoded() throws(TransferValueError) -> [UInt8] {
    do throws(TransferValueError) {
      return try frame()
    } catch {
      // A record that cannot be sent as it is keeps neither itself nor others from its program.
      guard case .notice(.changed(var record)) = self else { throw error }
      record.leaveOutParts()
      return try TransferMessage.notice(.changed(record)).frame()
    }
  }

  private func frame() throws(TransferValueError) -> [UInt8] {
    try TransferFrame(content: bytes(name: Self.name, version: Self.version)).encoded()
  }

  /// Reads a frame. The bytes are untrusted.
  ///
  /// - Throws: `otherVersion`, `damaged`.
  package init(_ frame: TransferFrame) throws(TransferValueError) {
    try self.init(bytes: frame.content, name: Self.name, version: Self.version)
  }

  /// Returns the frames that carry a session's tasks: few frames with many small records each, so that a session with
  /// 1,000 tasks opens at once.
  ///
  /// - Throws: `invalid`.
  package static func frames(of records: [TransferRecord]) throws(TransferValueError) -> [[UInt8]] {
    if let frame = try? TransferMessage.records(records).frame() { return records.isEmpty ? [] : [frame] }
    if records.count == 1, var record = records.first {
      record.leaveOutParts()
      return [try TransferMessage.records([record]).frame()]
    }
    let middle = records.count / 2
    return try frames(of: Array(records[..<middle])) + frames(of: Array(records[middle...]))
  }
}

/// A request of the user, not of a session's program.
public enum TransferAdministration: Codable, Hashable, Sendable {
  /// Asks for the sessions that the service carries out, with their tasks.
  case list
  /// Changes tasks of the session with the journal in `directory`.
  case change(Change, directory: String, tasks: Tasks)

  public enum Change: UInt8, Codable, Hashable, Sendable {
    case pause = 0
    case resume = 1
    case cancel = 2
  }

  public enum Tasks: Codable, Hashable, Sendable {
    case all
    case some([Int])
  }
}

/// A session that the service carries out.
public struct TransferServedSession: Codable, Hashable, Sendable {
  public var identifier: String
  /// The directory of the session's journal.
  public var directory: String
  /// Whether a program is attached.
  public var isAttached: Bool

  public init(identifier: String, directory: String, isAttached: Bool) {
    self.identifier = identifier
    self.directory = directory
    self.isAttached = isAttached
  }
}

/// The rules that every message keeps.
extension TransferMessage: TransferValue {
  package var invalidPart: String? {
    switch self {
    case .open(let session): session.invalidPart
    case .administer(let request): request.invalidPart
    case .command(let command): command.invalidPart
    case .notice(let notice): notice.invalidPart
    case .records(let records):
      records.count <= TransferDecoder.membersMax
        ? records.lazy.compactMap(\.invalidPart).first : "the number of records"
    case .serves(let session): session.isValid ? nil : "the session"
    case .done(let count): count >= 0 ? nil : "the number of sessions"
    case .flush, .refused, .opened, .flushed: nil
    }
  }

  static func taskPart(_ task: Int) -> String? {
    1...TransferRecord.taskMax ~= task ? nil : "the task identifier"
  }
}

extension TransferServedSession {
  var isValid: Bool { TransferRecord.isSession(identifier) && TransferSession.isDirectory(directory) }
}

extension TransferAdministration {
  var invalidPart: String? {
    guard case .change(_, let directory, let tasks) = self else { return nil }
    if !TransferSession.isDirectory(directory) { return "the directory" }
    guard case .some(let list) = tasks else { return nil }
    return list.count <= TransferJournal.tasksMax && list.allSatisfy { TransferMessage.taskPart($0) == nil }
      ? nil : "the list of tasks"
  }
}

/// One message of a program or of the transfer service, as bytes:
///
///     4 bytes    the size of the content in bytes, little-endian
///     ...        the content
package struct TransferFrame: Hashable, Sendable {
  /// Maximum size of the content in bytes. A peer that claims more would fill the memory.
  static let bytesMax = 2 << 20
  static let headCount = 4

  var content: [UInt8]

  /// Returns the bytes of the frame.
  ///
  /// - Throws: `tooLarge`.
  package func encoded() throws(TransferValueError) -> [UInt8] {
    guard content.count <= Self.bytesMax else { throw .tooLarge(content.count, max: Self.bytesMax) }
    var writer = RecordWriter()
    writer.bytes.reserveCapacity(Self.headCount + content.count)
    writer.number(UInt32(content.count))
    writer.bytes += content
    return writer.bytes
  }
}

/// Splits a peer's bytes into frames. Memory grows only with the bytes that have arrived, and holds at most one frame
/// and one piece.
package struct TransferFrameParser: Sendable {
  private var bytes: [UInt8] = []
  /// The position of the first byte that belongs to no frame yet.
  private var start = 0

  package init() {}

  package mutating func append(_ piece: [UInt8]) {
    if start > 0 {
      bytes.removeFirst(start)
      start = 0
    }
    bytes += piece
  }

  /// Whether the bytes so far end with a whole frame.
  package var isBetweenFrames: Bool { start == bytes.count }

  /// Returns the next frame, or `nil` if more bytes are needed.
  ///
  /// - Throws: `tooLarge`, after which the bytes cannot be split any more.
  package mutating func next() throws(TransferValueError) -> TransferFrame? {
    var reader = RecordReader(bytes: bytes[start...])
    guard let size = reader.number(UInt32.self) else { return nil }
    let count = Int(size)
    guard count <= TransferFrame.bytesMax else { throw .tooLarge(count, max: TransferFrame.bytesMax) }
    let first = start + TransferFrame.headCount
    guard bytes.count - first >= count else { return nil }
    start = first + count
    return TransferFrame(content: Array(bytes[first..<start]))
  }
}
