import Foundation
import Larkspur
import Synchronization
import Tracing

/// Makes a span of each attempt, and sends its identity to the server: as `traceparent`, if the tracer is one of the W3C.
///
/// The parent of the spans is the current one where the interceptor is made. A retry has a separate span.
public struct TraceInterceptor<T: Tracer>: URLSessionInterceptor {
  private let tracer: T
  private let parent: InstrumentationContext
  private let spans = OpenSpans<T.Span>()

  public init(_ tracer: T, parent: InstrumentationContext = .current ?? .topLevel) {
    self.tracer = tracer
    self.parent = parent
  }

  public func adapt(_ request: URLRequest, attempt: Int) async throws -> URLRequest {
    var request = request
    let method = request.httpMethod ?? "GET"
    let span = tracer.startSpan(method, context: parent, ofKind: .client)
    span.attributes["http.request.method"] = method
    span.attributes["url.full"] = request.url?.absoluteString
    span.attributes["server.address"] = request.url?.host()
    span.attributes["server.port"] = request.url?.port ?? (request.url?.scheme == "https" ? 443 : 80)
    if attempt > 1 { span.attributes["http.request.resend_count"] = attempt - 1 }
    let before = request.allHTTPHeaderFields ?? [:]
    tracer.inject(span.context, into: &request, using: RequestFields())
    let added = (request.allHTTPHeaderFields ?? [:]).filter { before[$0.key] != $0.value }
    if !spans.add(span, added) { span.end() }
    return request
  }

  public func decide(after attempt: URLSessionAttempt) async -> URLSession.InterceptorDecision {
    guard let span = spans.take(attempt.request) else { return .deliver }
    if let status = attempt.statusCode { span.attributes["http.response.status_code"] = status }
    if let error = attempt.error {
      span.attributes["error.type"] = "\(error.code.rawValue)"
      span.recordError(error)
    } else if let status = attempt.statusCode, status >= 400 {
      span.attributes["error.type"] = "\(status)"
    }
    if attempt.error != nil || attempt.statusCode ?? 0 >= 400 { span.setStatus(SpanStatus(code: .error)) }
    span.end()
    return .deliver
  }
}

private struct RequestFields: Injector {
  func inject(_ value: String, forKey key: String, into carrier: inout URLRequest) {
    carrier.setValue(value, forHTTPHeaderField: key)
  }
}

/// The spans of attempts, by the fields that carry their identity.
private final class OpenSpans<S: Span>: Sendable {
  private struct State {
    var names: [String] = []
    var spans: [[String?]: S] = [:]
  }

  private let state = Mutex(State())

  /// - Returns: `false` if no field carries the identity of the span.
  func add(_ span: S, _ fields: [String: String]) -> Bool {
    state.withLock { state in
      state.names = fields.keys.sorted()
      if !fields.isEmpty { state.spans[state.names.map { fields[$0] }] = span }
      return !fields.isEmpty
    }
  }

  func take(_ request: URLRequest) -> S? {
    state.withLock { state in
      state.spans.removeValue(forKey: state.names.map { request.value(forHTTPHeaderField: $0) })
    }
  }
}
