import Foundation
import InMemoryLogging
import InMemoryTracing
import Larkspur
import Logging
import Metrics
import MetricsTestKit
import Observers
import Tracing

/// Loads a page and a missing one from the server whose URL is the argument, and checks what the observers report.
@main enum Program {
  struct Unexpected: Error {
    let what: String
  }

  static func check(_ holds: Bool, _ what: @autoclosure () -> String) throws {
    if !holds { throw Unexpected(what: what()) }
  }

  static func main() async throws {
    guard let argument = CommandLine.arguments.dropFirst().first, let server = URL(string: argument) else {
      throw Unexpected(what: "the URL of a server is missing")
    }
    let handler = InMemoryLogHandler()
    var logger = Logger(label: "http") { _ in handler }
    logger.logLevel = .debug
    let metrics = TestMetrics()
    MetricsSystem.bootstrap(metrics)
    let tracer = InMemoryTracer()
    let configuration = URLSessionConfiguration.ephemeral
    configuration.eventObserver = HTTPEventObservers([LogObserver(logger), MetricsObserver()])
    configuration.interceptors = [TraceInterceptor(tracer)]
    let session = URLSession(configuration: configuration)
    for path in ["text", "missing"] { _ = try await session.data(from: server.appending(path: path)) }
    session.invalidateAndCancel()

    let messages = handler.entries.map { "\($0.message)" }
    try check(messages.filter { $0 == "started" || $0 == "ended" }.count == 4, "\(messages)")
    try check(messages.contains("connected") && messages.contains("response"), "\(messages)")
    let port = server.port.map { "\($0)" } ?? "80"
    for status in ["200", "404"] {
      let timer = try metrics.expectTimer(
        "http.client.request.duration",
        [
          ("http.request.method", "GET"), ("server.address", server.host() ?? ""), ("server.port", port),
          ("http.response.status_code", status),
        ])
      try check(timer.values.count == 1, "\(timer.values)")
    }
    let spans = tracer.finishedSpans
    try check(spans.map(\.operationName) == ["GET", "GET"], "\(spans)")
    try check(
      spans.map { $0.attributes.get("http.response.status_code") } == [200, 404].map { .int64($0) }, "\(spans)")
    try check(spans.last?.status?.code == .error, "\(spans)")
    try check(tracer.activeSpans.isEmpty, "\(tracer.activeSpans)")
    print("observed \(messages.count) messages, \(metrics.timers.count) timers, \(spans.count) spans")
  }
}
