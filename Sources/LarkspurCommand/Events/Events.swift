import Foundation
import Larkspur
import LarkspurBytes
import LarkspurConsole
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// `larkspur events`: writes the events of an event stream as lines, by the public API of `URLSession` alone.
///
/// `URLSessionEventSource` connects again when a connection ends. With `--no-reconnect` the bytes of one response are
/// read in its place. Either way the next event is read when the one before has been written, so a slow output slows
/// the server down.
struct Events {
  private let options: EventsOptions
  private let log: SessionLog?

  init(_ options: EventsOptions, on loop: ClientLoop) {
    self.options = options
    options.request.mute()
    log = options.request.isVerbose ? SessionLog(on: loop.kernel) : nil
  }

  func run() async -> ExitStatus {
    do throws(CommandFailure) {
      var given = options.request
      let target = try given.readData()
      let settings = try SessionSetUp(options.request, for: target)
      var request = try request(given, to: target)
      settings.addCookies(to: &request)
      let output = try FileOutput(path: nil, deadline: .never)
      let session = URLSession(configuration: settings.configuration, delegate: log, delegateQueue: nil)
      let failure = await load(request, by: session, settings, to: output)
      session.invalidateAndCancel()
      await log?.end()
      if let failure { throw failure }
      return .success
    } catch {
      return error.report()
    }
  }

  private func load(
    _ request: URLRequest, by session: URLSession, _ settings: SessionSetUp, to output: FileOutput
  ) async -> CommandFailure? {
    do {
      // RFC 9110 9.2.2: only a request without an effect is repeated by itself.
      if options.reconnects, request.httpMethod == "GET" {
        try await write(source(request, session, settings).events, to: output)
      } else if let bytes = try await bytes(request, session) {
        try await write(bytes.serverSentEvents, to: output)
      }
      return nil
    } catch {
      return Self.failure(error, at: request.url, settings)
    }
  }

  private func write(
    _ events: some AsyncSequence<ServerSentEvent, any Error>, to output: FileOutput
  ) async throws {
    var count = 0
    for try await event in events {
      let line = options.writesJSON ? EventLine.json(event) : EventLine.text(event)
      try output.write(Array(line.utf8).span)
      count += 1
      if count == options.eventsMax { return }
    }
  }

  // MARK: - Requests

  private func request(_ options: GetOptions, to target: RequestURL) throws(CommandFailure) -> URLRequest {
    var request = try GetRequest(options, to: target).request(to: target, options)
    if !options.fields.contains(named: "Accept") {
      request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
    }
    return request
  }

  private func source(
    _ request: URLRequest, _ session: URLSession, _ settings: SessionSetUp
  ) -> URLSessionEventSource {
    var configuration = URLSessionEventSource.Configuration()
    configuration.lastEventID = options.lastEventID
    configuration.tryFailed = { error, delay in
      let failure = Self.failure(error, at: request.url, settings)
      if let message = failure.message { Console.complain("\(message); the next try is in \(Format.time(delay))") }
    }
    if let log {
      let wait = configuration.wait
      configuration.prepare = { log.writeTry($0) }
      configuration.wait = { delay in
        log.write("the next try is in \(Format.time(delay))")
        try await wait(delay)
      }
    }
    return URLSessionEventSource(request: request, session: session, configuration: configuration)
  }

  /// Loads an event stream once.
  ///
  /// - Returns: The bytes, or `nil` if the server has no events.
  private func bytes(_ request: URLRequest, _ session: URLSession) async throws -> URLSession.AsyncBytes? {
    var request = request
    request.cachePolicy = .reloadIgnoringLocalCacheData
    if request.value(forHTTPHeaderField: "Cache-Control") == nil {
      request.setValue("no-store", forHTTPHeaderField: "Cache-Control")
    }
    if let id = options.lastEventID, !id.isEmpty { request.setValue(id, forHTTPHeaderField: "Last-Event-ID") }
    log?.writeTry(request)
    let (bytes, response) = try await session.bytes(for: request)
    guard let response = response as? HTTPURLResponse else { return nil }
    if response.statusCode == 204 { return nil }
    guard response.statusCode == 200, response.mimeType?.lowercased() == "text/event-stream" else {
      throw Self.refusal(response)
    }
    return bytes
  }

  // MARK: - Failures

  private static func failure(_ error: any Error, at url: URL?, _ settings: SessionSetUp) -> CommandFailure {
    if let failure = error as? CommandFailure { return failure }
    if let response = (error as? URLError)?.failingResponse as? HTTPURLResponse { return refusal(response) }
    return SessionFailure(error, url: url, settings).failure
  }

  /// Returns the failure for a response that is not an event stream.
  private static func refusal(_ response: HTTPURLResponse) -> CommandFailure {
    let (peer, status) = (SessionFailure.name(at: response.url), response.statusCode)
    guard status == 200 else {
      let reason = HTTPURLResponse.localizedString(forStatusCode: status)
      return CommandFailure(.httpError, "\(peer): the server answered with \(status) \(reason)")
    }
    return CommandFailure(
      .weirdReply, "\(peer): the server sends \(response.mimeType ?? "no type"), and not text/event-stream")
  }
}
