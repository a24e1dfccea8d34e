import LarkspurBytes

extension TransferNotice {
  func write(to writer: inout RecordWriter) throws(TransferRecordError) {
    if let part = invalidPart { throw .invalid(part) }
    switch self {
    case .changed(let record):
      writer.number(UInt8(0))
      writer.data(try record.encoded())
    case .progress(let task, let counts):
      writer.number(UInt8(1))
      writer.number(UInt32(clamping: task))
      for count in counts.all { writer.signed(count) }
    case .question(let number, let task, let question):
      writer.number(UInt8(2))
      writer.number(number)
      writer.number(UInt32(clamping: task))
      switch question {
      case .beginDelayed: writer.flag(false)
      case .challenge(let challenge):
        writer.flag(true)
        challenge.write(to: &writer)
      }
    case .lost: throw .invalid("the end of a connection")
    }
  }

  init(from input: inout RecordInput) throws(TransferRecordError) {
    switch try input.uint8() {
    case 0: self = .changed(try TransferRecord(file: try input.data()))
    case 1: self = .progress(task: Int(try input.uint32()), try TransferRecord.Counts(from: &input))
    case 2:
      let (number, task) = (try input.uint64(), Int(try input.uint32()))
      let isChallenge = try input.flag()
      self = .question(
        number, task: task, isChallenge ? .challenge(try TransferChallenge(from: &input)) : .beginDelayed)
    default: throw .damaged("a notice is of no known kind")
    }
    if let part = invalidPart { throw .damaged("\(part) is not valid") }
  }

  /// The part that breaks a rule, or `nil` if the notice is valid.
  private var invalidPart: String? {
    switch self {
    // The record has its own rules.
    case .changed, .lost: return nil
    case .progress(let task, let counts):
      if !(1...TransferRecord.taskMax ~= task) { return TransferCommand.taskPart }
      return counts.all.allSatisfy { $0 >= -1 } ? nil : "the counts"
    case .question(_, let task, let question):
      if !(1...TransferRecord.taskMax ~= task) { return TransferCommand.taskPart }
      if case .challenge(let challenge) = question { return challenge.invalidPart }
      return nil
    }
  }
}

extension TransferChallenge {
  /// Maximum number of certificates. Chains have fewer.
  private static let certificatesMax = 100

  fileprivate var invalidPart: String? {
    if certificates.count > Self.certificatesMax { return "the list of certificates" }
    return previousFailures >= 0 ? nil : "the number of failures"
  }

  fileprivate func write(to writer: inout RecordWriter) {
    writer.text(host)
    writer.signed(Int64(port))
    writer.optional(scheme)
    writer.optional(realm)
    writer.text(method)
    writer.optional(proxyKind)
    writer.signed(Int64(previousFailures))
    writer.list(certificates) { $1.data($0) }
  }

  fileprivate init(from input: inout RecordInput) throws(TransferRecordError) {
    self.init(
      host: try input.text(), port: try input.int(), scheme: try input.optionalText(),
      realm: try input.optionalText(), method: try input.text(), proxyKind: try input.optionalText(),
      previousFailures: try input.int(), certificates: [])
    for _ in 0..<(try input.count(max: Self.certificatesMax)) { certificates.append(try input.data()) }
  }
}
