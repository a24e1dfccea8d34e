import LarkspurBytes
import LarkspurHTTP

/// A record as the bytes of a file. A record grows with each redirect, response and error, most of which a server can make
/// large.
extension TransferRecord {
  /// The version of the format. Every change of the parts or of their meaning gets a new one.
  public static let formatVersion: UInt32 = 6
  package static let envelope = RecordEnvelope(name: "LKTR", version: formatVersion)
  /// Maximum size of a record's file in bytes. A larger file, which no journal writes, would fill the memory.
  public static let bytesMax = 1 << 20
  /// Maximum size of a new record's file in bytes. What the task gets later has room up to `bytesMax`.
  public static let newBytesMax = bytesMax - (256 << 10)
  /// Maximum size of all URLs of redirects together, in bytes. Those beyond it are not kept.
  public static let redirectsBytesMax = 64 << 10
  /// Maximum size of an error's text in bytes. Longer texts are cut.
  public static let messageBytesMax = 4096
  /// Maximum size of a task's description in bytes. Longer descriptions are cut.
  public static let descriptionBytesMax = 64 << 10

  /// Returns the bytes of the record's file.
  ///
  /// - Throws: `invalid`, `tooLarge`.
  public func encoded() throws(TransferValueError) -> [UInt8] {
    let bytes = Self.envelope.wrapped(try bytes())
    guard bytes.count <= Self.bytesMax else { throw .tooLarge(bytes.count, max: Self.bytesMax) }
    return bytes
  }

  /// Reads a record's file. The bytes are untrusted.
  ///
  /// - Throws: `otherVersion`, `damaged`, `tooLarge`.
  public init(file: [UInt8]) throws(TransferValueError) {
    guard file.count <= Self.bytesMax else { throw .tooLarge(file.count, max: Self.bytesMax) }
    try self.init(bytes: TransferValueError.content(of: file, Self.envelope))
  }

  /// Reads the file of a task of a session.
  ///
  /// - Throws: `damaged` for the record of another task or session, and the errors of `init(file:)`.
  init(_ file: [UInt8], of task: Int, _ session: String) throws(TransferValueError) {
    try self.init(file: file)
    guard self.task == task else { throw .damaged("the record belongs to task \(self.task)") }
    guard self.session == session else { throw .damaged("the record belongs to another session") }
  }

  /// Whether the record is valid, and its file has at most this size in bytes.
  public func fits(_ count: Int) -> Bool { ((try? encoded())?.count).map { $0 <= count } ?? false }

  /// Leaves parts out until the record has at most this size: first those that only show how the task came to its state.
  ///
  /// - Returns: Whether the record has that size now, and can be written.
  @discardableResult
  public mutating func leaveOutParts(until count: Int = bytesMax) -> Bool {
    let parts: [(inout TransferRecord) -> Void] = [
      { $0.currentRequest?.body = nil }, { $0.response?.fields = [] }, { $0.redirects = [] },
      { $0.currentRequest = nil },
      { $0.response = nil }, { $0.cookies = nil }, { $0.uploadPoint = nil }, { $0.resumePoint = nil },
    ]
    for leaveOut in parts {
      if fits(count) { return true }
      leaveOut(&self)
    }
    return fits(count)
  }

  /// Returns the beginning of a text, of at most `count` bytes.
  public static func cut(_ text: String, toBytes count: Int) -> String {
    guard text.utf8.count > count else { return text }
    var end = text.utf8.index(text.startIndex, offsetBy: count)
    while end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
    return String(text[..<end])
  }
}

/// The rules that every record keeps.
extension TransferRecord: TransferValue {
  /// Maximum task identifier.
  public static let taskMax = Int(UInt32.max)
  /// Maximum size of a session's identifier in bytes.
  public static let sessionBytesMax = 1024
  /// Maximum number of redirects. Sessions follow fewer.
  public static let redirectsMax = 64
  /// Maximum number of undelivered events. A task has at most one of each kind in an attempt.
  public static let eventsMax = 64

  package var invalidPart: String? {
    if !(1...Self.taskMax ~= task) { return "the task identifier" }
    if !Self.isSession(session) { return Self.sessionPart }
    if let part = originalRequest.invalidPart { return "the original request's \(part)" }
    if let part = currentRequest?.invalidPart { return "the current request's \(part)" }
    if redirects.count > Self.redirectsMax || !redirects.allSatisfy(Self.isURL) { return "the list of redirects" }
    if (kind == .upload) != (uploadFile != nil) { return "the kind" }
    if let file = uploadFile {
      if !file.path.utf8.starts(with: "/".utf8) || file.path.utf8.contains(0) || file.identity.size < 0
        || file.identity.modificationNanoseconds >= 1_000_000_000
      {
        return "the file to upload"
      }
    }
    if let point = resumePoint {
      if point.offset < 0 || point.total.map({ $0 < point.offset }) ?? false || !Self.isLine(point.validator)
        || point.validator.isEmpty || !Self.isLine(point.coding ?? "")
      {
        return "the resume point"
      }
      if point.offset > 0, !hasContentFile { return "the resume point without a file" }
    }
    if uploadPoint != nil, kind != .upload { return "the point of the upload" }
    if !counts.areValid { return "the counts" }
    if let response, !response.isValid { return "the response" }
    if failure == nil, underlyingFailure != nil { return "the underlying error" }
    let times = [
      createdSeconds, suspendedSeconds, pausedSeconds, earliestBeginSeconds, nextAttemptSeconds, clock?.startSeconds,
      priority,
    ]
    if !times.allSatisfy({ $0?.isFinite ?? true }) || pausedSeconds < 0 { return "the times" }
    if !(0...1 ~= priority) { return "the priority" }
    if events.count > Self.eventsMax { return "the list of events" }
    if events.contains(.completed), state != .completed { return "the state" }
    if events.contains(.downloaded), !hasContentFile { return "the downloaded file" }
    for case .resumed(let offset, let expected) in events where offset < 0 || expected < -1 {
      return "the list of events"
    }
    return nil
  }

  static let sessionPart = "the session identifier"

  /// Whether the text can be a session's identifier: one line of at most `sessionBytesMax` bytes.
  static func isSession(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= sessionBytesMax && isLine(text)
  }

  /// Whether the text can be the value of a field (RFC 9110 5.5).
  static func isLine(_ text: String) -> Bool { text.utf8.allSatisfy(Scan.isFieldValueByte) }

  static func isURL(_ text: String) -> Bool { !text.isEmpty && isLine(text) }

  static func areFields(_ fields: FieldList) -> Bool {
    fields.allSatisfy { !$0.name.isEmpty && $0.name.utf8.allSatisfy(Scan.isToken) && isLine($0.value) }
  }
}

extension TransferRecord.Counts {
  var areValid: Bool {
    [sent, received, expectedToSend, expectedToReceive, clientExpectsToSend, clientExpectsToReceive]
      .allSatisfy { $0 >= -1 }
  }
}

extension TransferRequest {
  /// The part that breaks a rule, or `nil` if the request is valid.
  var invalidPart: String? {
    if !TransferRecord.isURL(url) { return "URL" }
    if method.isEmpty || !method.utf8.allSatisfy(Scan.isToken) { return "method" }
    if !TransferRecord.areFields(fields) { return "fields" }
    if !(mainDocument.map(TransferRecord.isURL) ?? true) { return "main document" }
    // A timeout may be infinite.
    if timeoutSeconds?.isNaN ?? false { return "timeout" }
    return nil
  }
}

extension TransferResponse {
  fileprivate var isValid: Bool {
    TransferRecord.isURL(url) && status <= 999 && TransferRecord.isLine(version) && TransferRecord.areFields(fields)
  }
}
