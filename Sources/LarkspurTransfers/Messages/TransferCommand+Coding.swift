import LarkspurBytes

extension TransferCommand {
  /// The part that breaks a rule, or `nil` if the command is valid.
  private var invalidPart: String? {
    switch self {
    // The record has its own rules.
    case .create: return nil
    case .resume(let task), .suspend(let task), .cancel(let task, _):
      return 1...TransferRecord.taskMax ~= task ? nil : Self.taskPart
    case .update(let task, let properties):
      return 1...TransferRecord.taskMax ~= task ? properties.invalidPart : Self.taskPart
    case .acknowledge(let task, let count):
      if !(1...TransferRecord.taskMax ~= task) { return Self.taskPart }
      return 0...TransferRecord.eventsMax ~= count ? nil : "the number of events"
    case .answer(_, let answer): return answer.invalidPart
    }
  }

  static let taskPart = "the task identifier"

  func write(to writer: inout RecordWriter) throws(TransferRecordError) {
    if let part = invalidPart { throw .invalid(part) }
    func task(_ number: Int) { writer.number(UInt32(clamping: number)) }
    switch self {
    case .create(let record):
      writer.number(UInt8(0))
      writer.data(try record.encoded())
    case .resume(let number):
      writer.number(UInt8(1))
      task(number)
    case .suspend(let number):
      writer.number(UInt8(2))
      task(number)
    case .cancel(let number, let isKeepingContent):
      writer.number(UInt8(3))
      task(number)
      writer.flag(isKeepingContent)
    case .update(let number, let properties):
      writer.number(UInt8(4))
      task(number)
      writer.optional(properties.description)
      writer.double(properties.priority)
      writer.signed(properties.clientExpectsToSend)
      writer.signed(properties.clientExpectsToReceive)
    case .acknowledge(let number, let count):
      writer.number(UInt8(5))
      task(number)
      writer.number(UInt32(clamping: count))
    case .answer(let question, let answer):
      writer.number(UInt8(6))
      writer.number(question)
      answer.write(to: &writer)
    }
  }

  init(from input: inout RecordInput) throws(TransferRecordError) {
    switch try input.uint8() {
    case 0: self = .create(try TransferRecord(file: try input.data()))
    case 1: self = .resume(task: Int(try input.uint32()))
    case 2: self = .suspend(task: Int(try input.uint32()))
    case 3: self = .cancel(task: Int(try input.uint32()), isKeepingContent: try input.flag())
    case 4:
      let task = Int(try input.uint32())
      self = .update(
        task: task,
        TransferProperties(
          description: try input.optionalText(), priority: try input.double(),
          clientExpectsToSend: try input.signed(), clientExpectsToReceive: try input.signed()))
    case 5: self = .acknowledge(task: Int(try input.uint32()), count: Int(try input.uint32()))
    case 6: self = .answer(question: try input.uint64(), try TransferAnswer(from: &input))
    default: throw .damaged("a command is of no known kind")
    }
    if let part = invalidPart { throw .damaged("\(part) is not valid") }
  }
}

extension TransferProperties {
  fileprivate var invalidPart: String? {
    if !(0...1 ~= priority) { return "the priority" }
    if (description?.utf8.count ?? 0) > TransferRecord.descriptionBytesMax { return "the description" }
    return clientExpectsToSend >= -1 && clientExpectsToReceive >= -1 ? nil : "the counts"
  }
}

extension TransferAnswer {
  fileprivate var invalidPart: String? {
    switch self {
    case .continueLoading, .cancel: nil
    case .useNewRequest(let request): request.invalidPart.map { "the new request's \($0)" }
    case .challenge(_, let credential): credential?.invalidPart
    }
  }

  fileprivate func write(to writer: inout RecordWriter) {
    switch self {
    case .continueLoading: writer.number(UInt8(0))
    case .useNewRequest(let request):
      writer.number(UInt8(1))
      request.write(to: &writer)
    case .cancel: writer.number(UInt8(2))
    case .challenge(let disposition, let credential):
      writer.number(UInt8(3))
      writer.number(disposition.rawValue)
      Credential.write(credential, to: &writer)
    }
  }

  fileprivate init(from input: inout RecordInput) throws(TransferRecordError) {
    switch try input.uint8() {
    case 0: self = .continueLoading
    case 1: self = .useNewRequest(try TransferRequest(from: &input))
    case 2: self = .cancel
    case 3:
      self = .challenge(
        disposition: try input.value(Disposition.init(rawValue:)), credential: try Credential.read(from: &input))
    default: throw .damaged("an answer is of no known kind")
    }
  }
}
