import LarkspurBytes

extension TransferNotice {
  func write(to writer: inout RecordWriter) throws(TransferRecordError) {
    if let part = invalidPart { throw .invalid(part) }
    switch self {
    case .changed(let record):
      writer.number(UInt8(0))
      writer.data(try record.encodedWithRoom())
    case .progress(let task, let counts):
      writer.number(UInt8(1))
      writer.number(UInt32(clamping: task))
      for count in counts.all { writer.signed(count) }
    case .question(let number, let task, let question):
      writer.number(UInt8(2))
      writer.number(number)
      writer.number(UInt32(clamping: task))
      question.write(to: &writer)
    case .lost: throw .invalid("the end of a connection")
    }
  }

  init(from input: inout RecordInput) throws(TransferRecordError) {
    switch try input.uint8() {
    case 0: self = .changed(try TransferRecord(file: try input.data()))
    case 1: self = .progress(task: Int(try input.uint32()), try TransferRecord.Counts(from: &input))
    case 2:
      self = .question(
        try input.uint64(), task: Int(try input.uint32()), try TransferQuestion(from: &input))
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
      return question.invalidPart
    }
  }
}

extension TransferQuestion {
  /// Maximum number of members of a list of certificates or issuers.
  static let membersMax = 1000
  /// Maximum size of a list of certificates or issuers in bytes. OpenSSL accepts 100 KiB of a server.
  static let membersBytesMax = 256 << 10

  /// The part that breaks a rule, or `nil` if the question can be sent.
  var invalidPart: String? {
    switch self {
    case .beginDelayed: return nil
    case .challenge(let challenge):
      if challenge.previousFailures < 0 { return "the number of failures" }
      return challenge.proposed?.invalidPart
    case .trust(let trust):
      if trust.depth < 0 { return "the depth" }
      return !trust.sent.isEmpty && Self.isList(trust.sent) && Self.isList(trust.verified)
        ? nil : Self.certificatesPart
    case .clientCertificate(let request): return Self.isList(request.issuers) ? nil : "the list of issuers"
    }
  }

  /// Whether the question can be sent: its parts are no larger than those of any chain or list of issuers in use.
  package var isPossible: Bool { invalidPart == nil }

  fileprivate static let certificatesPart = "the list of certificates"

  static func isList(_ members: [[UInt8]]) -> Bool {
    members.count <= membersMax && members.reduce(0) { $0 + $1.count } <= membersBytesMax
  }

  fileprivate func write(to writer: inout RecordWriter) {
    switch self {
    case .beginDelayed: writer.number(UInt8(0))
    case .challenge(let challenge):
      writer.number(UInt8(1))
      challenge.write(to: &writer)
    case .trust(let trust):
      writer.number(UInt8(2))
      writer.text(trust.host)
      writer.signed(Int64(trust.port))
      writer.list(trust.sent) { $1.data($0) }
      writer.list(trust.verified) { $1.data($0) }
      writer.number(UInt32(bitPattern: trust.code))
      writer.signed(Int64(trust.depth))
      writer.optional(trust.complaint)
    case .clientCertificate(let request):
      writer.number(UInt8(3))
      writer.text(request.host)
      writer.signed(Int64(request.port))
      writer.list(request.issuers) { $1.data($0) }
    }
  }

  fileprivate init(from input: inout RecordInput) throws(TransferRecordError) {
    switch try input.uint8() {
    case 0: self = .beginDelayed
    case 1: self = .challenge(try TransferChallenge(from: &input))
    case 2:
      self = .trust(
        TransferTrust(
          host: try input.text(), port: try input.int(), sent: try input.members(), verified: try input.members(),
          code: Int32(bitPattern: try input.uint32()), depth: try input.int(), complaint: try input.optionalText()))
    case 3:
      self = .clientCertificate(
        TransferCertificateRequest(host: try input.text(), port: try input.int(), issuers: try input.members()))
    default: throw .damaged("a question is of no known kind")
    }
  }
}

extension RecordInput {
  /// Reads a list of certificates or issuers.
  mutating func members() throws(TransferRecordError) -> [[UInt8]] {
    var members: [[UInt8]] = []
    for _ in 0..<(try count(max: TransferQuestion.membersMax)) { members.append(try data()) }
    return members
  }
}

extension TransferChallenge {
  fileprivate func write(to writer: inout RecordWriter) {
    writer.text(host)
    writer.signed(Int64(port))
    writer.optional(scheme)
    writer.optional(realm)
    writer.text(method)
    writer.optional(proxyKind)
    writer.signed(Int64(previousFailures))
    TransferAnswer.Credential.write(proposed, to: &writer)
  }

  fileprivate init(from input: inout RecordInput) throws(TransferRecordError) {
    self.init(
      host: try input.text(), port: try input.int(), scheme: try input.optionalText(),
      realm: try input.optionalText(), method: try input.text(), proxyKind: try input.optionalText(),
      previousFailures: try input.int(), proposed: try TransferAnswer.Credential.read(from: &input))
  }
}

extension TransferAnswer.Credential {
  /// Maximum size of a key in bytes. An RSA key of 16,384 bits has 9 KiB.
  private static let keyBytesMax = 64 << 10

  /// The part that breaks a rule, or `nil` if the credential can be sent.
  var invalidPart: String? {
    guard case .identity(let certificates, let key) = self else { return nil }
    if certificates.isEmpty || !TransferQuestion.isList(certificates) { return TransferQuestion.certificatesPart }
    return 1...Self.keyBytesMax ~= key.count ? nil : "the key"
  }

  static func write(_ credential: Self?, to writer: inout RecordWriter) {
    switch credential {
    case nil: writer.number(UInt8(0))
    case .password(let user, let password, let persistence):
      writer.number(UInt8(1))
      writer.text(user)
      writer.text(password)
      writer.number(persistence)
    case .trust: writer.number(UInt8(2))
    case .identity(let certificates, let key):
      writer.number(UInt8(3))
      writer.list(certificates) { $1.data($0) }
      writer.data(key)
    }
  }

  static func read(from input: inout RecordInput) throws(TransferRecordError) -> Self? {
    switch try input.uint8() {
    case 0: nil
    case 1: .password(user: try input.text(), password: try input.text(), persistence: try input.uint8())
    case 2: .trust
    case 3: .identity(certificates: try input.members(), key: try input.data())
    default: throw .damaged("a credential is of no known kind")
    }
  }
}
