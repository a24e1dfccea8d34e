import LarkspurBytes
import LarkspurHTTP

/// A record as the bytes of a file: a `TransferEnvelope` with the parts of the record in a fixed order.
extension TransferRecord {
  /// The version of the format. Every change of the parts or of their meaning gets a new one.
  public static let formatVersion: UInt32 = 5
  /// Maximum size of a record's file in bytes. A larger file, which no journal writes, would fill the memory.
  public static let bytesMax = 1 << 20

  /// Returns the bytes of the record's file.
  ///
  /// - Throws: `invalid`, `tooLarge`.
  public func encoded() throws(TransferRecordError) -> [UInt8] {
    if let part = invalidPart { throw .invalid(part) }
    var writer = RecordWriter()
    write(to: &writer)
    let bytes = TransferEnvelope.wrapped(writer.bytes, version: Self.formatVersion)
    guard bytes.count <= Self.bytesMax else { throw .tooLarge(bytes.count) }
    return bytes
  }

  /// Reads a record's file. The bytes are untrusted.
  ///
  /// - Throws: `otherVersion`, `damaged`, `tooLarge`.
  public init(file: [UInt8]) throws(TransferRecordError) {
    guard file.count <= Self.bytesMax else { throw .tooLarge(file.count) }
    let content = try TransferEnvelope.content(of: file, version: Self.formatVersion)
    var input = RecordInput(reader: RecordReader(bytes: content))
    try self.init(from: &input)
    guard input.reader.isAtEnd else { throw .damaged("bytes follow the last part") }
    if let part = invalidPart { throw .damaged("\(part) is not valid") }
  }

  private func write(to writer: inout RecordWriter) {
    writer.number(UInt32(clamping: task))
    writer.text(session)
    writer.number(kind.rawValue)
    writer.number(state.rawValue)
    writer.optional(taskDescription)
    originalRequest.write(to: &writer)
    writer.present(currentRequest) { $0.write(to: &$1) }
    writer.list(redirects) { $1.text($0) }
    writer.present(cookies) { $1.data($0) }
    writer.present(uploadFile) { file, writer in
      writer.text(file.path)
      writer.signed(Int64(file.identity.size))
      writer.signed(file.identity.modificationSeconds)
      writer.number(file.identity.modificationNanoseconds)
      writer.number(file.identity.inode)
    }
    writer.flag(hasContentFile)
    writer.present(resumePoint) { point, writer in
      writer.text(point.validator)
      writer.signed(Int64(point.offset))
      writer.present(point.total) { $1.signed(Int64($0)) }
      writer.optional(point.coding)
    }
    writer.present(uploadPoint) { $1.data($0) }
    for count in counts.all { writer.signed(count) }
    writer.present(response) { response, writer in
      writer.text(response.url)
      writer.number(response.status)
      writer.text(response.version)
      writer.fields(response.fields)
      writer.flag(response.isDecoded)
    }
    writer.present(failure) { $0.write(to: &$1) }
    writer.present(underlyingFailure) { $0.write(to: &$1) }
    writer.double(createdSeconds)
    writer.present(suspendedSeconds) { $1.double($0) }
    writer.double(pausedSeconds)
    writer.present(earliestBeginSeconds) { $1.double($0) }
    writer.present(nextAttemptSeconds) { $1.double($0) }
    writer.present(clock) { clock, writer in
      writer.number(clock.boot)
      writer.double(clock.startSeconds)
    }
    writer.number(failedAttempts)
    writer.flag(isDiscretionary)
    writer.double(priority)
    writer.list(events) { $0.write(to: &$1) }
  }

  private init(from input: inout RecordInput) throws(TransferRecordError) {
    task = Int(try input.uint32())
    session = try input.text()
    kind = try input.value(Kind.init(rawValue:))
    state = try input.value(State.init(rawValue:))
    taskDescription = try input.optionalText()
    originalRequest = try TransferRequest(from: &input)
    if try input.flag() { currentRequest = try TransferRequest(from: &input) }
    for _ in 0..<(try input.count(max: Self.redirectsMax)) { redirects.append(try input.text()) }
    if try input.flag() { cookies = try input.data() }
    if try input.flag() {
      let path = try input.text()
      let identity = UploadFileIdentity(
        size: try input.int(), modificationSeconds: try input.signed(),
        modificationNanoseconds: try input.uint32(), inode: try input.uint64())
      uploadFile = UploadFile(path: path, identity: identity)
    }
    hasContentFile = try input.flag()
    if try input.flag() {
      let validator = try input.text()
      let offset = try input.int()
      let total = try input.flag() ? try input.int() : nil
      resumePoint = ResumePoint(
        validator: validator, offset: offset, total: total, coding: try input.optionalText())
    }
    if try input.flag() { uploadPoint = try input.data() }
    counts = try Counts(from: &input)
    if try input.flag() {
      response = TransferResponse(
        url: try input.text(), status: try input.uint32(), version: try input.text(), fields: try input.fields(),
        isDecoded: try input.flag())
    }
    if try input.flag() { failure = try Failure(from: &input) }
    if try input.flag() { underlyingFailure = try Failure(from: &input) }
    createdSeconds = try input.double()
    if try input.flag() { suspendedSeconds = try input.double() }
    pausedSeconds = try input.double()
    if try input.flag() { earliestBeginSeconds = try input.double() }
    if try input.flag() { nextAttemptSeconds = try input.double() }
    if try input.flag() { clock = Clock(boot: try input.uint64(), startSeconds: try input.double()) }
    failedAttempts = try input.uint32()
    isDiscretionary = try input.flag()
    priority = try input.double()
    for _ in 0..<(try input.count(max: Self.eventsMax)) { events.append(try Event(from: &input)) }
  }
}

extension TransferRequest {
  func write(to writer: inout RecordWriter) {
    writer.text(url)
    writer.text(method)
    writer.fields(fields)
    writer.present(body) { $1.data($0) }
    writer.optional(mainDocument)
    writer.optional(cookiePartition)
    writer.present(timeoutSeconds) { $1.double($0) }
    writer.number(cachePolicy)
    writer.number(networkServiceType)
    writer.number(flags)
  }

  init(from input: inout RecordInput) throws(TransferRecordError) {
    self.init(url: try input.text(), method: try input.text())
    fields = try input.fields()
    if try input.flag() { body = try input.data() }
    mainDocument = try input.optionalText()
    cookiePartition = try input.optionalText()
    if try input.flag() { timeoutSeconds = try input.double() }
    cachePolicy = try input.uint32()
    networkServiceType = try input.uint32()
    flags = try input.uint32()
  }
}

extension TransferRecord.Counts {
  init(from input: inout RecordInput) throws(TransferRecordError) {
    self.init()
    sent = try input.signed()
    received = try input.signed()
    expectedToSend = try input.signed()
    expectedToReceive = try input.signed()
    clientExpectsToSend = try input.signed()
    clientExpectsToReceive = try input.signed()
  }
}

extension TransferRecord.Failure {
  fileprivate func write(to writer: inout RecordWriter) {
    writer.text(domain)
    writer.signed(code)
    writer.text(message)
  }

  fileprivate init(from input: inout RecordInput) throws(TransferRecordError) {
    self.init(domain: try input.text(), code: try input.signed(), message: try input.text())
  }
}

extension TransferRecord.Event {
  fileprivate func write(to writer: inout RecordWriter) {
    switch self {
    case .resumed(let offset, let expected):
      writer.number(UInt8(0))
      writer.signed(offset)
      writer.signed(expected)
    case .downloaded: writer.number(UInt8(1))
    case .completed: writer.number(UInt8(2))
    }
  }

  fileprivate init(from input: inout RecordInput) throws(TransferRecordError) {
    switch try input.uint8() {
    case 0: self = .resumed(offset: try input.signed(), expected: try input.signed())
    case 1: self = .downloaded
    case 2: self = .completed
    default: throw .damaged("an event is of no known kind")
    }
  }
}
