import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurTransport

/// The trailer fields of a request's streamed body. Copies share it.
final class RequestTrailers: Sendable {
  let names: [String]
  private let values: @Sendable () async throws -> [String: String]

  init(_ names: [String], _ values: @escaping @Sendable () async throws -> [String: String]) {
    self.names = names
    self.values = values
  }

  /// The field that announces the names (RFC 9110 6.6.2).
  var announcement: Field { Field("Trailer", names.joined(separator: ", ")) }

  /// Checks the names, and that the body has a form that can carry trailers.
  func check(_ body: RequestWriter.Body, url: URL?) throws(URLError) {
    do throws(RequestError) {
      for name in names { try ChunkedEncoder.check(trailer: name) }
    } catch {
      throw URLError.make(.badURL, "setTrailers: \(error)", url: url)
    }
    // RFC 9112 7.1.2: only the chunked coding has trailers.
    guard body == .chunked else {
      throw URLError.make(.badURL, "setTrailers: only a streamed body without Content-Length has trailers", url: url)
    }
  }

  /// Adds the fields to a body whose last byte has been written. The program's function runs on Swift's thread pool.
  func write(to writer: BodyWriter) async throws {
    let values = try await Task.detached { [values] in try await values() }.value
    for (name, value) in values.sorted(by: { $0.key < $1.key }) {
      guard names.contains(where: { $0.equalsIgnoringCase(name) }) else {
        throw URLError.make(.badURL, "setTrailers: \(name) is not among the announced names")
      }
      await writer.trailer(name, value)
    }
  }
}

extension URLRequest {
  /// Sets the trailer fields of a streamed body (RFC 9110 6.5): values that are known only when the body has been sent,
  /// such as its digest. By default there are none. An addition of Larkspur's; curl's library has
  /// `CURLOPT_TRAILERFUNCTION`.
  ///
  /// The request fails with `URLError.badURL` before anything is sent if it has no streamed body or a `Content-Length`, if it
  /// belongs to a background session, or if a name is not allowed in trailers: fields for framing, routing,
  /// authentication, conditions and controls, and those that describe the content. If `values` throws or returns another
  /// name, the request fails with `requestBodyStreamExhausted`, and the server gets no complete body.
  ///
  /// - Parameters:
  ///   - names: The names of the fields, which the request's `Trailer` field announces. An empty list removes the
  ///     trailers.
  ///   - values: Returns the values by name when the stream has ended. A name may be left out. Called on any thread, and
  ///     again if the body is sent again.
  public mutating func setTrailers(
    _ names: [String], values: @escaping @Sendable () async throws -> [String: String]
  ) {
    change { $0.trailers = names.isEmpty ? nil : RequestTrailers(names, values) }
  }
}
