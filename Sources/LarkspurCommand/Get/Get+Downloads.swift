import Foundation
import Larkspur
import LarkspurBytes
import LarkspurConsole
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// Downloads in pieces, from mirrors, with checksums, and of the files of a list.
extension Get {
  private struct Item: Sendable {
    var name: String
    var plan: DownloadPlan
  }

  /// The files that are loaded at once without `--parallel-max`.
  private static let filesMax = 4
  /// The time without a byte after which a request has failed, in seconds.
  private static let silenceMax = 60.0
  /// Limit of the file with checksums.
  private static let checksumBytesMax = 4 << 20

  /// Loads all files. Reports each failure.
  ///
  /// - Throws: The first failure, in the order of the list.
  func loadInPieces() async throws(CommandFailure) {
    var options = options
    options.session.followsRedirects = true
    let entries = try self.entries()
    let mirrors = try options.downloads.mirrors.map { url throws(CommandFailure) in try RequestURL.parse(url) }
    let source: RequestURL? =
      if let url = options.downloads.checksumSource { try RequestURL.parse(url) } else { nil }
    let targets = entries.map(\.url) + mirrors + (source.map { [$0] } ?? [])
    try checkSecrets(for: targets)
    let settings = try SessionSetUp(options, for: targets.first { $0.isSecure } ?? targets[0])
    options.tls.warnOfKeyLog()
    let configuration = configuration(settings, nil)
    configuration.timeoutIntervalForRequest = Self.silenceMax
    configuration.httpMaximumConnectionsPerHost = DownloadPlan.connectionsRange.upperBound
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    var items: [Item] = []
    let checksums: ChecksumList? =
      if let source { try await checksumList(at: source, by: session, settings) } else { nil }
    for entry in entries { items.append(try item(entry, mirrors, checksums)) }
    let failures = await load(items, by: session, settings)
    try settings.jar?.save(deadline: deadline)
    if let first = failures.min(by: { $0.key < $1.key }) { throw CommandFailure(first.value.status) }
  }

  // MARK: - The plans

  /// The files of the list, or the one of the command line.
  private func entries() throws(CommandFailure) -> [DownloadList.Entry] {
    if let list = options.downloads.list {
      let bytes = try OptionFile.read(list, atMost: DownloadList.bytesMax)
      do throws(DownloadList.Faults) {
        return try DownloadList(String(decoding: bytes, as: UTF8.self), name: list == "-" ? "standard input" : list)
          .entries
      } catch {
        for message in error.messages { Console.complain(message) }
        throw CommandFailure(error.status)
      }
    }
    let url = try RequestURL.parse(options.url)
    let path = try options.outputPath(for: url) ?? ""
    return [DownloadList.Entry(line: 0, url: url, path: path, checksum: options.downloads.checksum)]
  }

  private func item(
    _ entry: DownloadList.Entry, _ mirrors: [RequestURL], _ checksums: ChecksumList?
  ) throws(CommandFailure) -> Item {
    var options = options
    // The fields go to the mirrors, too.
    if mirrors.isEmpty { try options.readNetrc(for: entry.url) }
    let request = try GetRequest(options, to: entry.url, through: ProxySetUp.proxy(options, to: entry.url))
    let path = options.downloads.list == nil ? entry.path : options.path(named: entry.path)
    var plan = DownloadPlan([entry.url.uri] + mirrors.map(\.uri), to: path)
    plan.connections =
      options.downloads.connections ?? max(1, min(plan.urls.count, DownloadPlan.connectionsRange.upperBound))
    plan.fields = request.fields
    if let host = request.host { plan.fields.append(Field("Host", host)) }
    if let retries = options.retriesMax { plan.retry.attemptsMax = retries + 1 }
    plan.checksum = entry.checksum
    let name = FilePaths.name(of: path)
    if plan.checksum == nil, let checksums {
      let names = [name] + (entry.url.fileName.map { [$0] } ?? [])
      do throws(ChecksumList.Failure) {
        plan.checksum = try checksums.checksum(of: names)
      } catch {
        throw CommandFailure(.checksumWrong, "\(options.downloads.checksumSource ?? ""): \(error)")
      }
    }
    do throws(DownloadError) { try plan.check() } catch { throw CommandFailure(.usage, "\(error)") }
    return Item(name: name, plan: plan)
  }

  /// Checks that what is for one server goes to one server only: a password, a token, a cookie, the pins of its keys.
  private func checkSecrets(for targets: [RequestURL]) throws(CommandFailure) {
    let hasSecrets =
      options.givesCredentials || !options.session.cookies.isEmpty || options.fields.contains(named: "Cookie")
      || !options.tls.pins.isEmpty || !options.downloads.mirrors.isEmpty && targets.contains { $0.credentials != nil }
    guard hasSecrets, Set(targets.map { "\($0.isSecure) \($0.authority)" }).count > 1 else { return }
    throw CommandFailure(
      .usage, "a password, a token, cookies of -b and pins are for one server, and the URLs are of several")
  }

  private func checksumList(
    at target: RequestURL, by session: URLSession, _ settings: SessionSetUp
  ) async throws(CommandFailure) -> ChecksumList {
    var options = options
    try options.readNetrc(for: target)
    let request = try GetRequest(options, to: target, through: ProxySetUp.proxy(options, to: target))
      .request(to: target, options)
    do {
      let (bytes, response) = try await session.bytes(for: request)
      let status = (response as? HTTPURLResponse)?.statusCode ?? 0
      guard status == 200 else {
        throw CommandFailure(.httpError, "\(target.uri): the server answered with \(status)")
      }
      var text: [UInt8] = []
      for try await byte in bytes {
        guard text.count < Self.checksumBytesMax else {
          throw CommandFailure(.receiveFailed, "\(target.uri) is larger than \(Format.bytes(Self.checksumBytesMax))")
        }
        text.append(byte)
      }
      return ChecksumList(String(decoding: text, as: UTF8.self))
    } catch let failure as CommandFailure {
      throw failure
    } catch {
      throw SessionFailure(error, url: request.url, settings).failure
    }
  }

  // MARK: - The downloads

  /// Loads the files.
  ///
  /// - Returns: The failures by the numbers of the files.
  private func load(_ items: [Item], by session: URLSession, _ settings: SessionSetUp) async -> [Int: CommandFailure] {
    let board = DownloadBoard(
      count: items.count, on: OpenFile.standardError.isTerminal && !options.isVerbose ? .standardError : nil,
      isSilent: options.isSilent)
    let timeLeft = deadline.duration(since: loop.kernel.now())
    let timer: Task<Void, Never>? =
      deadline == .never
      ? nil
      : Task {
        if (try? await Task.sleep(for: timeLeft)) != nil { board.stop() }
      }
    let ticker = Task(executorPreference: loop) {
      while (try? await Task.sleep(for: .milliseconds(100))) != nil { board.draw() }
    }
    let atOnce = options.downloads.filesMax ?? Self.filesMax
    let failures = await withTaskGroup(of: (Int, CommandFailure?).self) { group in
      var failures: [Int: CommandFailure] = [:]
      for (number, item) in items.enumerated() {
        if number >= atOnce, let (ended, failure) = await group.next() { failures[ended] = failure }
        if board.isStopped || Task.isCancelled { break }
        group.addTask { (number, await load(item, number, by: session, settings, board)) }
      }
      for await (ended, failure) in group { failures[ended] = failure }
      return failures
    }
    timer?.cancel()
    ticker.cancel()
    await ticker.value
    board.draw()
    return failures
  }

  /// Loads a file, and reports its end.
  private func load(
    _ item: Item, _ number: Int, by session: URLSession, _ settings: SessionSetUp, _ board: DownloadBoard
  ) async -> CommandFailure? {
    let download = session.download(item.plan)
    let begin = loop.kernel.now()
    var report = TransferReport(url: RequestURL.redacted(item.plan.urls.first ?? ""))
    report.fileName = item.plan.destination
    var received = 0
    defer {
      report.pieces = (received, loop.kernel.now().duration(since: begin))
      options.writeOut?.write(report, until: deadline)
    }
    board.begin(number, item.name, download)
    do throws(DownloadError) {
      let file = try await download.value
      received = file.received
      board.end(number, file, failure: nil)
      return nil
    } catch {
      var failure = CommandFailure(ExitStatus(error), "\(error)")
      if error.code == .cancelled {
        failure =
          board.isStopped
          ? CommandFailure(.timedOut, "\(item.plan.destination): timed out (--max-time)") : CommandFailure(.signal(2))
      } else if let cause = error.underlying, error.code == .requestFailed {
        failure = SessionFailure(cause, url: URL(string: error.url), settings).failure
        // The server's address alone does not say which file of a list has failed.
        if options.downloads.list != nil { failure.message = failure.message.map { "\(item.name): \($0)" } }
      }
      board.end(number, nil, failure: failure.message)
      report.failure = failure
      return failure
    }
  }
}
