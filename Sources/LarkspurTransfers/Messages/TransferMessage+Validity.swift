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

  fileprivate static func taskPart(_ task: Int) -> String? {
    1...TransferRecord.taskMax ~= task ? nil : "the task identifier"
  }
}

extension TransferSession {
  /// Maximum size of the settings in bytes.
  public static let settingsBytesMax = 1 << 20
  /// Maximum number of tasks. A journal refuses more than `TransferJournal.tasksMax`, and tells the program so for each.
  package static let tasksMax = 2 * TransferJournal.tasksMax
  /// Maximum number of words of a launch command.
  private static let launchWordsMax = 256
  /// Maximum size of a launch command in bytes.
  private static let launchBytesMax = 64 << 10
  /// Maximum size of a journal's path in bytes (`PATH_MAX` of the kernel).
  private static let directoryBytesMax = 4096

  /// The part that breaks a rule, or `nil` if the session is valid.
  var invalidPart: String? {
    if !TransferRecord.isSession(identifier) { return TransferRecord.sessionPart }
    if !Self.isDirectory(directory) { return "the directory" }
    if settings.count > Self.settingsBytesMax { return "the size of the settings" }
    if !Self.isLaunchCommand(launchCommand) { return "the launch command" }
    return nil
  }

  /// Whether the words can start a program: absent, or an absolute path and arguments.
  private static func isLaunchCommand(_ words: [String]) -> Bool {
    words.count <= launchWordsMax && words.reduce(0) { $0 + $1.utf8.count } <= launchBytesMax
      && words.first?.hasPrefix("/") != false && words.allSatisfy { !$0.utf8.contains(0) }
  }

  /// Whether the text is an absolute path without `..`.
  fileprivate static func isDirectory(_ path: String) -> Bool {
    path.utf8.first == UInt8(ascii: "/") && path.utf8.count <= directoryBytesMax && !path.utf8.contains(0)
      && !path.utf8.split(separator: UInt8(ascii: "/")).contains { $0.elementsEqual("..".utf8) }
  }
}

extension TransferServedSession {
  fileprivate var isValid: Bool { TransferRecord.isSession(identifier) && TransferSession.isDirectory(directory) }
}

extension TransferAdministration {
  fileprivate var invalidPart: String? {
    guard case .change(_, let directory, let tasks) = self else { return nil }
    if !TransferSession.isDirectory(directory) { return "the directory" }
    guard case .some(let list) = tasks else { return nil }
    return list.count <= TransferJournal.tasksMax && list.allSatisfy { TransferMessage.taskPart($0) == nil }
      ? nil : "the list of tasks"
  }
}

extension TransferCommand {
  fileprivate var invalidPart: String? {
    switch self {
    case .create(let record): record.invalidPart
    case .resume(let task), .suspend(let task), .cancel(let task, _): TransferMessage.taskPart(task)
    case .update(let task, let properties): TransferMessage.taskPart(task) ?? properties.invalidPart
    case .acknowledge(let task, let count):
      TransferMessage.taskPart(task) ?? (0...TransferRecord.eventsMax ~= count ? nil : "the number of events")
    case .answer(_, let answer): answer.invalidPart
    }
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
}

extension TransferAnswer.Credential {
  /// Maximum size of a key in bytes. An RSA key of 16,384 bits has 9 KiB.
  private static let keyBytesMax = 64 << 10

  fileprivate var invalidPart: String? {
    guard case .identity(let certificates, let key) = self else { return nil }
    if certificates.isEmpty || !TransferQuestion.isList(certificates) { return TransferQuestion.certificatesPart }
    return 1...Self.keyBytesMax ~= key.count ? nil : "the key"
  }
}

extension TransferNotice {
  fileprivate var invalidPart: String? {
    switch self {
    case .changed(let record): record.invalidPart
    case .progress(let task, let counts): TransferMessage.taskPart(task) ?? (counts.areValid ? nil : "the counts")
    case .question(_, let task, let question): TransferMessage.taskPart(task) ?? question.invalidPart
    case .lost: "the end of a connection"
    }
  }
}

extension TransferQuestion {
  /// Maximum number of members of a list of certificates or issuers.
  private static let membersMax = 1000
  /// Maximum size of a list of certificates or issuers in bytes. OpenSSL accepts 100 KiB of a server.
  static let membersBytesMax = 256 << 10
  fileprivate static let certificatesPart = "the list of certificates"

  fileprivate var invalidPart: String? {
    switch self {
    case .beginDelayed: return nil
    case .challenge(let challenge):
      return challenge.previousFailures < 0 ? "the number of failures" : challenge.proposed?.invalidPart
    case .trust(let trust):
      if trust.depth < 0 { return "the depth" }
      return !trust.sent.isEmpty && Self.isList(trust.sent) && Self.isList(trust.verified)
        ? nil : Self.certificatesPart
    case .clientCertificate(let request): return Self.isList(request.issuers) ? nil : "the list of issuers"
    }
  }

  /// Whether the question can be sent: its parts are no larger than those of any chain or list of issuers in use.
  package var isPossible: Bool { invalidPart == nil }

  fileprivate static func isList(_ members: [[UInt8]]) -> Bool {
    members.count <= membersMax && members.reduce(0) { $0 + $1.count } <= membersBytesMax
  }
}
