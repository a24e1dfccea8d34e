import LarkspurTransfers

extension Fixture {
  static func transferSession(_ directory: String = "/state/larkspur/transfers/app/a") -> TransferSession {
    TransferSession(
      identifier: session, directory: directory, settings: [0, 1, 2, 255], launchCommand: ["/app", "--background", ""])
  }

  static let challenge = TransferChallenge(
    host: "example.com", port: 443, scheme: "https", realm: "größe", method: "NSURLAuthenticationMethodDefault",
    proxyKind: "https", previousFailures: 2, proposed: .password(user: "me", password: "", persistence: 1))

  static let trust = TransferTrust(
    host: "example.com", port: 443, sent: [[1, 2, 3], []], verified: [[1, 2, 3]], code: 20, depth: 1,
    complaint: "no file")

  static let request = TransferCertificateRequest(host: "example.com", port: 443, issuers: [[4, 5], [6]])

  static let commands: [TransferCommand] = [
    .create(fullDownload()), .create(upload()), .resume(task: 1), .suspend(task: TransferRecord.taskMax),
    .cancel(task: 3, isKeepingContent: true), .cancel(task: 3, isKeepingContent: false),
    .update(
      task: 4,
      TransferProperties(description: "a\nb", priority: 0.25, clientExpectsToSend: 5, clientExpectsToReceive: .max)),
    .update(task: 4, TransferProperties(description: nil, priority: 1)), .acknowledge(task: 5, count: 3),
    .answer(question: .max, .continueLoading), .answer(question: 0, .cancel),
    .answer(question: 1, .useNewRequest(fullDownload().originalRequest)),
    .answer(question: 2, .challenge(disposition: .rejectProtectionSpace, credential: nil)),
    .answer(question: 3, .challenge(disposition: .useCredential, credential: .trust)),
    .answer(
      question: 4,
      .challenge(
        disposition: .useCredential, credential: .password(user: "me", password: "secret", persistence: 2))),
    .answer(
      question: 5,
      .challenge(disposition: .useCredential, credential: .identity(certificates: [[1], [2, 3]], key: [4]))),
  ]

  static let notices: [TransferNotice] = [
    .changed(fullDownload()), .progress(task: 9, fullDownload().counts), .question(7, task: 1, .beginDelayed),
    .question(.max, task: 2, .challenge(challenge)), .question(3, task: 2, .trust(trust)),
    .question(4, task: 2, .clientCertificate(request)),
  ]

  static var messages: [TransferMessage] {
    commands.map { .command($0) } + notices.map { .notice($0) } + [
      .open(transferSession()), .administer(.list),
      .administer(.change(.pause, directory: "/a", tasks: .all)),
      .administer(.change(.cancel, directory: "/a", tasks: .some([1, 2, TransferRecord.taskMax]))),
      .flush(.max), .flushed(7), .refused(.inUse), .refused(.unavailable(reason: "no room")), .records([]),
      .records(all), .opened,
      .serves(TransferServedSession(identifier: session, directory: "/a", isAttached: true)), .done(count: 12),
    ]
  }
}
