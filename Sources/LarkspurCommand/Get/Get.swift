import Foundation
import Larkspur
import LarkspurBytes
import LarkspurConsole
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// `larkspur get`: makes the request by a session, and copies the body to the output.
///
/// The delegate passes one piece of the body on and waits until the main thread has written it. So memory does not grow
/// with the body, a slow output slows the server down, and a signal ends a write that blocks.
struct Get {
  let options: GetOptions
  let loop: ClientLoop
  private let start: Deadline
  private let progress: TransferProgress
  private let kept: KeptSession
  /// Whether the session can make the next request as well.
  private let keepsSession: Bool

  init(_ options: GetOptions, on loop: ClientLoop, by kept: KeptSession = KeptSession(), keepingSession: Bool = false) {
    self.options = options
    self.loop = loop
    self.kept = kept
    keepsSession = keepingSession
    start = loop.kernel.now()
    progress = kept.progress(isLogged: options.isVerbose)
    options.mute()
  }

  var deadline: Deadline { options.maxTime.map { start.advanced(by: $0) } ?? .never }

  /// The configuration of the session, with the settings that only the command has.
  func configuration(_ settings: SessionSetUp, _ recorder: HARRecorder?) -> URLSessionConfiguration {
    let configuration = settings.configuration
    if deadline != .never {
      // Reading the body from standard input counts. A timeout of 0 would be the default of a session.
      let timeLeft = max(deadline.duration(since: loop.kernel.now()), .milliseconds(1))
      configuration.timeoutIntervalForResource = Format.seconds(timeLeft)
    }
    configuration.timeoutIntervalForConnection = options.connectTimeout.map(Format.seconds)
    configuration.eventObserver = recorder.map { HTTPEventObservers([kept, $0]) } ?? kept
    configuration.tlsTrustSettings.dangerousKeyLogFile = options.tls.keyLogFile
    // For a proxy's tunnel. The request has its own field.
    configuration.httpAdditionalHeaders = ["User-Agent": options.userAgent ?? "larkspur/\(LarkspurCommand.version)"]
    return configuration
  }

  func run() async -> ExitStatus {
    // On the main thread, like all writing: signals and the deadline end a write that blocks. Not a child task, which
    // a signal would cancel.
    let logging = Task(executorPreference: loop) { @concurrent [progress, start] in
      var log = VerboseLog(since: start)
      for await entry in progress.entries {
        // A signal ends a write that blocks; the next one would block again.
        if CaughtSignal.pending != nil { return }
        log.write(entry.event, at: entry.time)
      }
    }
    var report = TransferReport(url: RequestURL.redacted(options.url))
    do throws(CommandFailure) { try await load(&report) } catch { report.failure = error }
    if !keepsSession { kept.end() }
    progress.endLog()
    await logging.value
    let status = report.failure?.report() ?? .success
    report.head = progress.head
    if !options.downloads.isInUse { options.writeOut?.write(report, until: deadline) }
    return status
  }

  private func load(_ report: inout TransferReport) async throws(CommandFailure) {
    if options.downloads.isInUse { return try await loadInPieces() }
    var options = options
    let target = try options.readData()
    try options.readNetrc(for: target)
    let plan = try GetRequest(
      options, to: target, through: ProxySetUp.proxy(options, to: target), streams: true)
    let form =
      options.session.parts.isEmpty
      ? plan.stream : try FormBody(options.session.parts, type: plan.fields.values(named: "Content-Type").last)
    let settings = try SessionSetUp(options, for: target)
    if options.printsCurl { return try printCommand(plan, target, settings, form) }
    let recorder = try self.recorder()
    defer { try? recorder?.flush() }
    let path = try options.outputPath(for: target)
    report.fileName = path
    let tag = try EntityTagFile(options, for: path)
    let output = try self.output(path)
    var heads: FileOutput?
    CaughtSignal.interruptCalls(at: deadline)
    do throws(CommandFailure) {
      if let path = options.headFile { heads = try FileOutput(path: path == "-" ? nil : path, deadline: deadline) }
      if settings.usesTLS { options.tls.warnOfKeyLog() }
      let retries = options.retryPolicy
      var part = FilePart(output.canStartOver && !options.showsHead ? retries : nil, continuing: output.kept)
      let start: FieldList = output.kept.map { $0.offset > 0 ? [Field("Range", "bytes=\($0.offset)-")] : [] } ?? []
      var end = Outcome.broken(.zero)
      while case .broken(let delay) = end {
        try await pause(for: delay)
        let range = (part.conditions.isEmpty ? start : part.conditions) + (tag?.condition ?? [])
        var request = try plan.request(to: target, options, isExact: true, form: form, range: range)
        settings.addCookies(to: &request)
        let transfer = SessionTransfer(settings, form: form, retries: retries)
        let session = kept.session(for: transfer) {
          let configuration = configuration(settings, recorder)
          if retries != nil { configuration.interceptors = [kept] }
          return configuration
        }
        let events = transfer.start(request, by: session)
        do throws(CommandFailure) {
          end = try await receive(events, of: transfer, to: output, heads, tag, &part)
        } catch {
          await transfer.end(closingConnections: options.isVerbose || options.writeOut != nil)
          kept.end()
          report.metrics = transfer.metrics
          throw error
        }
        report.metrics = transfer.metrics
        let isKept = keepsSession && !end.isBroken
        // Observers get the events of one session at a time.
        await transfer.end(closingConnections: !isKept && (options.isVerbose || end.isBroken))
        if !isKept { kept.end() }
      }
      if case .unchanged = end { output.abandon() } else { try output.commit() }
      try tag?.save(until: deadline)
      if case .refused(let failure) = end { throw failure }
    } catch {
      output.abandon()
      // The heads that came and the cookies that a server has set count, even if the transfer fails.
      try? finish(heads, settings.jar)
      throw error
    }
    try finish(heads, settings.jar)
    do {
      try recorder?.flush()
    } catch {
      throw CommandFailure(.writeFailed, "could not write \(options.harFile ?? ""): \(error.localizedDescription)")
    }
  }

  private func printCommand(
    _ plan: GetRequest, _ target: RequestURL, _ settings: SessionSetUp, _ form: FormBody?
  ) throws(CommandFailure) {
    var request = try plan.request(to: target, options, isExact: true, form: form)
    settings.addCookies(to: &request)
    let output = try FileOutput(path: nil, deadline: deadline)
    try output.write(Array((request.curlCommand(includesSecrets: options.showsSecrets) + "\n").utf8).span)
  }

  private func recorder() throws(CommandFailure) -> HARRecorder? {
    guard let path = options.harFile else { return nil }
    do {
      return try HARRecorder(
        URL(filePath: path), bodyBytesMax: Self.recordedBytesMax, includesSecrets: options.showsSecrets)
    } catch {
      throw CommandFailure(.writeFailed, "could not create \(path): \(error.localizedDescription)")
    }
  }

  /// The number of bytes of each body that `--har` records.
  private static let recordedBytesMax = 16 << 20

  private func output(_ path: String?) throws(CommandFailure) -> FileOutput {
    if options.session.resumes, let path { return try FileOutput(goingOnWith: path, deadline: deadline) }
    return try FileOutput(path: path, deadline: deadline, allowsAnyBytes: options.writesAnyBytes)
  }

  /// Writes the files of `-D` and `-c`.
  private func finish(_ heads: FileOutput?, _ jar: CookieFile?) throws(CommandFailure) {
    defer { heads?.abandon() }
    try heads?.write(progress.takeHeads().span)
    try heads?.commit()
    try jar?.save(deadline: deadline)
  }

  // MARK: - Retries

  /// The outcome of a transfer that has not failed.
  private enum Outcome {
    case complete
    /// The version is the one of the tag's file.
    case unchanged
    /// The response counts as a failure, whose body has been written.
    case refused(CommandFailure)
    /// A request for the rest follows after a delay.
    case broken(Duration)

    var isBroken: Bool { if case .broken = self { true } else { false } }
  }

  private func pause(for delay: Duration) async throws(CommandFailure) {
    guard delay > .zero else { return }
    do { try await Task.sleep(for: delay) } catch { throw CommandFailure(.signal(2)) }
  }

  private func report(_ reason: String, retryAfter delay: Duration) {
    Console.complain("\(reason); the next try is in \(Format.time(delay))")
  }

  // MARK: - The response

  /// The content of a request from which on its progress is shown, in bytes.
  private static let shownUploadMin = 64 << 10

  private func receive(
    _ events: AsyncStream<SessionTransfer.Event>, of transfer: SessionTransfer, to output: FileOutput,
    _ heads: FileOutput?, _ tag: EntityTagFile?, _ part: inout FilePart
  ) async throws(CommandFailure) -> Outcome {
    let showsProgress =
      !options.isVerbose && !options.isSilent && !options.session.showsMetrics && OpenFile.standardError.isTerminal
    var refused: CommandFailure?
    var bar: ProgressBar?
    var received = 0
    defer { bar?.finish(now: loop.kernel.now()) }
    var isWanted = true
    var isUnchanged = false
    var missing: Int?
    /// The response whose coding has not been checked yet, or `nil` once its body has begun.
    var response: HTTPURLResponse?
    for await event in events {
      switch event {
      case .sent(let count, let total):
        guard showsProgress, total ?? .max >= Self.shownUploadMin else { continue }
        if bar == nil { bar = ProgressBar(total: total, on: .standardError, now: loop.kernel.now()) }
        bar?.advance(to: count, now: loop.kernel.now())
      case .retrying(let attempt, let delay):
        bar?.finish(now: loop.kernel.now())
        bar = nil
        report(
          attempt.error?.localizedDescription ?? "the server answered with \(attempt.statusCode ?? 0)",
          retryAfter: delay)
      case .response(let head):
        bar?.finish(now: loop.kernel.now())
        bar = nil
        response = head
        missing = nil
        isUnchanged = tag?.take(head) == true
        isWanted = !isUnchanged
        if isUnchanged {
          try heads?.write(progress.takeHeads().span)
          continue
        }
        let hasBytes = part.count > 0
        switch part.take(head) {
        case .continueAt(let offset, let end, _):
          missing = end - offset
          try heads?.write(progress.takeHeads().span)
        case .startOver:
          guard let delay = part.delay(after: nil) else {
            throw try refusal(head, output.kept == nil ? .partialBody : .resumeFailed)
          }
          report("the server has another version of the file", retryAfter: delay)
          return .broken(delay)
        case .confirmLast:
          isWanted = false
          try heads?.write(progress.takeHeads().span)
        case .deliver:
          if output.kept != nil { isWanted = try take(head, output, heads, &missing) }
          throw try refusal(head, .partialBody)
        case .replace:
          isWanted = try take(head, output, heads, &missing)
          guard isWanted else { break }
          if hasBytes { try output.startOver() }
          output.note(version: FilePart.version(of: head))
        }
        if head.statusCode >= 400, options.failsWithBody { refused = try refusal(head) }
        if showsProgress, isWanted, output.isFile {
          let total = head.expectedContentLength >= 0 ? Int(clamping: head.expectedContentLength) : nil
          bar = ProgressBar(total: total, on: .standardError, now: loop.kernel.now())
        }
      case .piece(let piece):
        if isWanted {
          if let received = response { try checkCoding(of: received) }
          response = nil
          if let count = missing {
            guard piece.count <= count else {
              throw CommandFailure(.resumeFailed, "\(output.name): the server sends more than it says")
            }
            missing = count - piece.count
          }
          try output.write(piece.span)
          part.add(piece.count)
          received += piece.count
          bar?.advance(to: received, now: loop.kernel.now())
        }
        transfer.pieceIsTaken()
      case .metrics(let metrics):
        bar?.finish(now: loop.kernel.now())
        bar = nil
        if options.session.showsMetrics { MetricsTable.show(metrics) }
      case .completed(let error):
        if let error {
          guard let delay = part.delay(after: error), deadline > loop.kernel.now().advanced(by: delay) else {
            throw try failure(error)
          }
          report(error.localizedDescription, retryAfter: delay)
          return .broken(delay)
        }
        if let count = missing, count > 0 {
          throw CommandFailure(.partialBody, "\(output.name): the server sends \(count) bytes less than it says")
        }
        return refused.map { .refused($0) } ?? (isUnchanged ? .unchanged : .complete)
      }
    }
    // Only a signal ends the stream early, by cancelling the task, and the process exits with that signal's status.
    throw CommandFailure(.signal(2))
  }

  /// Judges a response, and writes the heads so far if `-i`, `-I` or `-D` asks for it. Sets `missing` to the length of
  /// the range that the response announces, if there is one.
  ///
  /// - Returns: Whether to write the body.
  private func take(
    _ response: HTTPURLResponse, _ output: FileOutput, _ heads: FileOutput?, _ missing: inout Int?
  ) throws(CommandFailure) -> Bool {
    let status = response.statusCode
    let text = progress.takeHeads()
    try heads?.write(text.span)
    if let kept = output.kept {
      let offset = kept.offset
      let failure = "\(output.name) cannot be \(offset == 0 ? "loaded" : "completed"): "
      let named = response.value(forHTTPHeaderField: "Content-Range") ?? "no range"
      switch response.bodyExtent {
      case .part(let range)
      where range.bytes.lowerBound == offset && range.isTail
        && ResumePoint.coding(of: response.fieldValues) == nil:
        missing = range.bytes.count
        return true
      case .part, .contradiction:
        let others = ["Content-Length", "Content-Encoding", "Content-Type"].compactMap { name in
          response.value(forHTTPHeaderField: name).map { ", \(name): \($0)" }
        }
        throw CommandFailure(.resumeFailed, "\(failure)the server sends \(named)\(others.joined())")
      case .other where status < 400 && kept.count > 0:
        throw CommandFailure(.rangeRefused, "\(failure)the server answered with \(progress.status)")
      case _ where offset == 0: break
      // Without a total the server states that no bytes follow those of the file.
      case .nothing(let total) where total ?? offset == offset: return false
      case .unclear where status == 416, .nothing:
        throw CommandFailure(.resumeFailed, "\(failure)the server has other bytes: \(named)")
      case .whole, .unclear:
        throw CommandFailure(
          .rangeRefused, "\(failure)the server sends the whole only (without --resume it begins again)")
      case .other: break
      }
    }
    if options.showsHead || options.isHead { try output.write(text.span) }
    if status >= 400, options.failsOnHTTPError || output.kept != nil { throw try refusal(response) }
    return true
  }

  private func refusal(
    _ response: HTTPURLResponse, _ status: ExitStatus = .httpError
  ) throws(CommandFailure) -> CommandFailure {
    CommandFailure(status, "\(try peer(at: response.url)): the server answered with \(progress.status)")
  }

  /// Throws if the content has an unknown coding, which a session leaves undecoded.
  private func checkCoding(of response: HTTPURLResponse) throws(CommandFailure) {
    guard options.session.decodes, let codings = response.value(forHTTPHeaderField: "Content-Encoding") else { return }
    for coding in codings.lowercased().split(whereSeparator: { ", \t".contains($0) })
    where !["gzip", "x-gzip", "deflate", "identity"].contains(coding) {
      throw CommandFailure(
        .codingBroken,
        "\(try peer(at: response.url)): the content is coded by \(coding), which is unknown")
    }
  }

  // MARK: - Failures

  /// Returns the failure for an error of the session.
  private func failure(_ error: URLError) throws(CommandFailure) -> CommandFailure {
    if error.code == .cancelled { return CommandFailure(.signal(2)) }
    let peer = try peer(at: error.failingURL)
    if let cause = error.transportError ?? lateness(error) {
      return peer.failure(cause, connectTimeout: options.connectTimeout, maxTime: options.maxTime)
    }
    return CommandFailure(ExitStatus(error), "\(peer): \(error.localizedDescription)")
  }

  /// Returns the error of the phase in which the time of `--max-time` was up.
  ///
  /// - Returns: `nil` if the error has another cause.
  private func lateness(_ error: URLError) -> TransportError? {
    guard error.code == .timedOut else { return nil }
    let phase = progress.phase
    return phase == .securing ? .tls(TLSError(.handshakeTimedOut)) : .timedOut(phase)
  }

  /// Returns the server of a URL, or that of the command line if the URL is `nil` or has none.
  private func peer(at url: URL?) throws(CommandFailure) -> Peer {
    let redirected = url.flatMap { try? RequestURL($0.absoluteString) }
    let target = if let redirected { redirected } else { try RequestURL.parse(options.url) }
    return Peer(target, through: try ProxySetUp.proxy(options, to: target), address: progress.address)
  }
}
