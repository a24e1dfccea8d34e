import AsyncAlgorithms
import HTTPTypes
import Hummingbird
import LarkspurClient

/// A request that is relayed to an upstream, and the response as it comes.
///
/// The client lends a response to a closure, and Hummingbird writes a response after its handler has returned. Therefore the
/// exchange has a task of its own, which hands over the response's parts one at a time: the upstream sends no faster than
/// the caller reads, and the request's body is read no faster than the upstream takes it.
final class Relay: Sendable {
  enum Part: Sendable {
    case head(status: Int, fields: FieldList)
    case piece([UInt8])
  }

  let parts: AsyncThrowingChannel<Part, any Error>
  private let exchange: Task<Void, Never>

  init(_ request: Request, to upstream: String, by client: HTTPClient) {
    let parts = AsyncThrowingChannel<Part, any Error>()
    self.parts = parts
    exchange = Task {
      do {
        // The caller's connection may close at any time: then this task's child is cancelled, and with it the exchange.
        try await request.body.consumeWithCancellationOnInboundClose { body in
          try await client.perform(Self.request(request, body, to: upstream)) { response in
            await parts.send(.head(status: response.status, fields: response.fields))
            for try await piece in response.body { await parts.send(.piece(piece)) }
          }
        }
        parts.finish()
      } catch {
        parts.fail(error)
      }
    }
  }

  /// A response that is not written, for instance because a middleware replaces it, ends the exchange as well.
  deinit { exchange.cancel() }

  /// Returns the response as soon as its head has arrived. Its body follows while the request's body is still sent.
  func response() async throws -> Response {
    let first = try await withTaskCancellationHandler {
      var iterator = parts.makeAsyncIterator()
      return try await iterator.next()
    } onCancel: {
      exchange.cancel()
    }
    guard case .head(let status, let fields) = first else { throw HTTPError(.badGateway) }
    var headers = HTTPFields()
    for field in fields where Self.isEndToEnd(field.name) {
      if let name = HTTPField.Name(field.name) { headers.append(HTTPField(name: name, value: field.value)) }
    }
    return Response(
      status: HTTPResponse.Status(code: status), headers: headers,
      body: ResponseBody { writer in
        for try await part in self.parts {
          if case .piece(let piece) = part { try await writer.write(ByteBuffer(bytes: piece)) }
        }
        try await writer.finish(nil)
      })
  }

  private static func request(
    _ request: Request, _ body: RequestBody, to upstream: String
  ) -> HTTPClient.Request {
    var result = HTTPClient.Request(upstream + request.uri.string, method: request.method.rawValue)
    for field in request.headers where isEndToEnd(field.name.rawName) && field.name.canonicalName != "host" {
      result.fields.append(Field(field.name.rawName, field.value))
    }
    let length = request.headers[.contentLength].flatMap { Int($0) }
    if length ?? 0 > 0 || request.headers[.transferEncoding] != nil {
      result.body = .sequence(body.map { Array($0.readableBytesView) }, length: length)
    }
    return result
  }

  /// Whether a field is meant for the other end, and not for one connection (RFC 9110 7.6.1). Lengths follow from the bodies,
  /// and Hummingbird has answered `Expect` already: the body comes.
  private static func isEndToEnd(_ name: String) -> Bool {
    let connection: Set = [
      "connection", "content-length", "expect", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade",
    ]
    return !connection.contains(name.lowercased())
  }
}
