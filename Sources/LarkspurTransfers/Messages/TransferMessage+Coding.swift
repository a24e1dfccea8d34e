import LarkspurBytes

extension TransferMessage {
  private enum Kind: UInt8 {
    case open = 1
    case administer = 2
    case command = 3
    case flush = 4
    case refused = 64
    case records = 65
    case opened = 66
    case notice = 67
    case serves = 68
    case done = 69
    case flushed = 70
  }

  /// Returns the message as the bytes of a frame.
  ///
  /// - Throws: `invalid`, `tooLarge`. `notice(.lost)` is not valid: the program's side makes that notice.
  package func encoded() throws(TransferMessageError) -> [UInt8] {
    var writer = RecordWriter()
    let kind: Kind
    do throws(TransferRecordError) {
      kind = try write(to: &writer)
    } catch {
      throw TransferMessageError(error)
    }
    return try TransferFrame(kind: kind.rawValue, content: writer.bytes).encoded()
  }

  /// Reads a frame. The bytes are untrusted.
  ///
  /// - Throws: `otherVersion`, `damaged`.
  package init(_ frame: TransferFrame) throws(TransferMessageError) {
    guard let kind = Kind(rawValue: frame.kind) else { throw .damaged("no message has the kind \(frame.kind)") }
    var input = RecordInput(reader: RecordReader(bytes: frame.content[...]))
    switch kind {
    case .open, .administer: try Self.checkGreeting(&input)
    case .refused: try Self.checkVersion(&input)
    default: break
    }
    do throws(TransferRecordError) {
      self = try Self.read(kind, &input)
    } catch {
      throw TransferMessageError(error)
    }
    guard input.reader.isAtEnd else { throw .damaged("bytes follow the last part") }
  }

  private static func checkGreeting(_ input: inout RecordInput) throws(TransferMessageError) {
    for byte in name where input.reader.number(UInt8.self) != byte { throw .damaged("the name is missing") }
    try checkVersion(&input)
  }

  private static func checkVersion(_ input: inout RecordInput) throws(TransferMessageError) {
    guard let found = input.reader.number(UInt32.self) else { throw .damaged("the version is missing") }
    guard found == version else { throw .otherVersion(found) }
  }

  private func write(to writer: inout RecordWriter) throws(TransferRecordError) -> Kind {
    switch self {
    case .open(let session):
      if let part = session.invalidPart { throw .invalid(part) }
      Self.greet(&writer)
      session.write(to: &writer)
      return .open
    case .administer(let request):
      if let part = request.invalidPart { throw .invalid(part) }
      Self.greet(&writer)
      request.write(to: &writer)
      return .administer
    case .command(let command):
      try command.write(to: &writer)
      return .command
    case .refused(let error):
      writer.number(Self.version)
      switch error {
      case .inUse: writer.number(UInt8(0))
      case .unavailable(let reason):
        writer.number(UInt8(1))
        writer.text(reason)
      }
      return .refused
    case .records(let records):
      writer.number(UInt32(clamping: records.count))
      for record in records { writer.data(try record.encodedWithRoom()) }
      return .records
    case .flush(let number):
      writer.number(number)
      return .flush
    case .flushed(let number):
      writer.number(number)
      return .flushed
    case .opened: return .opened
    case .notice(let notice):
      try notice.write(to: &writer)
      return .notice
    case .serves(let session):
      writer.text(session.identifier)
      writer.text(session.directory)
      writer.flag(session.isAttached)
      return .serves
    case .done(let count):
      writer.number(UInt32(clamping: count))
      return .done
    }
  }

  private static func greet(_ writer: inout RecordWriter) {
    writer.bytes += name
    writer.number(version)
  }

  private static func read(_ kind: Kind, _ input: inout RecordInput) throws(TransferRecordError) -> TransferMessage {
    switch kind {
    case .open: return .open(try TransferSession(from: &input))
    case .administer: return .administer(try TransferAdministration(from: &input))
    case .command: return .command(try TransferCommand(from: &input))
    case .refused:
      switch try input.uint8() {
      case 0: return .refused(.inUse)
      case 1: return .refused(.unavailable(reason: try input.text()))
      default: throw .damaged("a refusal is of no known kind")
      }
    case .records:
      var records: [TransferRecord] = []
      for _ in 0..<(try input.count(max: TransferJournal.tasksMax)) {
        records.append(try TransferRecord(file: try input.data()))
      }
      return .records(records)
    case .flush: return .flush(try input.uint64())
    case .flushed: return .flushed(try input.uint64())
    case .opened: return .opened
    case .notice: return .notice(try TransferNotice(from: &input))
    case .serves:
      let (identifier, directory) = (try input.text(), try input.text())
      guard TransferRecord.isSession(identifier), TransferSession.isDirectory(directory) else {
        throw .damaged("the session is not valid")
      }
      return .serves(
        TransferServedSession(identifier: identifier, directory: directory, isAttached: try input.flag()))
    case .done: return .done(count: Int(try input.uint32()))
    }
  }

  /// Returns the frames that tell a session's tasks: few frames with many small records each, so that a session with
  /// 1,000 tasks opens at once.
  ///
  /// - Throws: `invalid`.
  package static func frames(of records: [TransferRecord]) throws(TransferMessageError) -> [[UInt8]] {
    var frames: [[UInt8]] = []
    var piece = RecordWriter()
    var count = 0
    for record in records {
      let bytes: [UInt8]
      do throws(TransferRecordError) {
        bytes = try record.encodedWithRoom()
      } catch {
        throw TransferMessageError(error)
      }
      // A record, with its size before it, has its place in a frame even if it is as large as a record can be.
      if count > 0, piece.bytes.count + bytes.count + 8 > Self.pieceBytesMax {
        frames.append(try Self.frame(of: piece, count))
        (piece, count) = (RecordWriter(), 0)
      }
      piece.data(bytes)
      count += 1
    }
    if count > 0 { frames.append(try frame(of: piece, count)) }
    return frames
  }

  private static let pieceBytesMax = 1 << 20

  private static func frame(of piece: RecordWriter, _ count: Int) throws(TransferMessageError) -> [UInt8] {
    var writer = RecordWriter()
    writer.number(UInt32(clamping: count))
    writer.bytes += piece.bytes
    return try TransferFrame(kind: Kind.records.rawValue, content: writer.bytes).encoded()
  }
}

extension TransferSession {
  /// Maximum size of the settings in bytes.
  public static let settingsBytesMax = 1 << 20
  /// Maximum number of tasks. A journal refuses more than `TransferJournal.tasksMax`, and tells the program so for each.
  package static let tasksMax = 2 * TransferJournal.tasksMax
  /// Maximum size of a journal's path in bytes (`PATH_MAX` of the kernel).
  static let directoryBytesMax = 4096

  /// The part that breaks a rule, or `nil` if the session is valid.
  var invalidPart: String? {
    if !TransferRecord.isSession(identifier) { return TransferRecord.sessionPart }
    if !Self.isDirectory(directory) { return "the directory" }
    if settings.count > Self.settingsBytesMax { return "the size of the settings" }
    if !Self.isLaunchCommand(launchCommand) { return "the launch command" }
    return nil
  }

  /// Whether the words can start a program: absent, or an absolute path and arguments, of 64 KiB together.
  static func isLaunchCommand(_ words: [String]) -> Bool {
    let bytes = words.reduce(0) { $0 + $1.utf8.count }
    return words.count <= TransferMessage.launchWordsMax && bytes <= 64 << 10 && words.first?.hasPrefix("/") != false
      && words.allSatisfy { !$0.utf8.contains(0) }
  }

  /// Whether the text is an absolute path without `..`.
  static func isDirectory(_ path: String) -> Bool {
    path.utf8.first == UInt8(ascii: "/") && path.utf8.count <= directoryBytesMax && !path.utf8.contains(0)
      && !path.utf8.split(separator: UInt8(ascii: "/")).contains { $0.elementsEqual("..".utf8) }
  }

  func write(to writer: inout RecordWriter) {
    writer.text(identifier)
    writer.text(directory)
    writer.data(settings)
    writer.list(launchCommand) { $1.text($0) }
  }

  fileprivate init(from input: inout RecordInput) throws(TransferRecordError) {
    self.init(identifier: try input.text(), directory: try input.text(), settings: try input.data())
    for _ in 0..<(try input.count(max: TransferMessage.launchWordsMax)) { launchCommand.append(try input.text()) }
    if let part = invalidPart { throw .damaged("\(part) is not valid") }
  }
}

extension TransferAdministration {
  fileprivate var invalidPart: String? {
    guard case .change(_, let directory, let tasks) = self else { return nil }
    if !TransferSession.isDirectory(directory) { return "the directory" }
    if case .some(let list) = tasks {
      let isPossible =
        list.count <= TransferJournal.tasksMax && list.allSatisfy { 1...TransferRecord.taskMax ~= $0 }
      if !isPossible { return "the list of tasks" }
    }
    return nil
  }

  fileprivate func write(to writer: inout RecordWriter) {
    switch self {
    case .list: writer.number(UInt8(0))
    case .change(let change, let directory, let tasks):
      writer.number(UInt8(1))
      writer.number(change.rawValue)
      writer.text(directory)
      switch tasks {
      case .all: writer.flag(false)
      case .some(let list):
        writer.flag(true)
        writer.list(list) { $1.number(UInt32(clamping: $0)) }
      }
    }
  }

  fileprivate init(from input: inout RecordInput) throws(TransferRecordError) {
    switch try input.uint8() {
    case 0: self = .list
    case 1:
      let change = try input.value(Change.init(rawValue:))
      let directory = try input.text()
      guard try input.flag() else {
        self = .change(change, directory: directory, tasks: .all)
        break
      }
      var list: [Int] = []
      for _ in 0..<(try input.count(max: TransferJournal.tasksMax)) { list.append(Int(try input.uint32())) }
      self = .change(change, directory: directory, tasks: .some(list))
    default: throw .damaged("a request is of no known kind")
    }
    if let part = invalidPart { throw .damaged("\(part) is not valid") }
  }
}
