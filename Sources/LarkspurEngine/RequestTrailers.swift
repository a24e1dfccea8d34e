import LarkspurBytes
import LarkspurHTTP
import LarkspurTransport

/// The trailer fields of a request's streamed body. Copies share it.
package final class RequestTrailers: Sendable {
  /// The reason why trailers cannot be sent.
  package struct Invalid: Error, CustomStringConvertible {
    package let description: String
  }

  private let names: [String]
  private let values: @Sendable () async throws -> [String: String]

  package init(_ names: [String], _ values: @escaping @Sendable () async throws -> [String: String]) {
    self.names = names
    self.values = values
  }

  /// The field that announces the names (RFC 9110 6.6.2).
  package var announcement: Field { Field("Trailer", names.joined(separator: ", ")) }

  /// Checks the names, and that the body has a form that can carry trailers.
  ///
  /// - Parameter isStreamed: Whether the body is streamed, in chunks.
  package func check(isStreamed: Bool) throws(Invalid) {
    do throws(RequestError) {
      for name in names { try ChunkedEncoder.check(trailer: name) }
    } catch {
      throw Invalid(description: "setTrailers: \(error)")
    }
    // RFC 9112 7.1.2: only the chunked coding has trailers.
    guard isStreamed else {
      throw Invalid(description: "setTrailers: only a streamed body without Content-Length has trailers")
    }
  }

  /// Adds the fields to a body whose last byte has been written. The program's function runs on Swift's thread pool.
  package func write(to writer: BodyWriter) async throws {
    let values = try await Task.detached { [values] in try await values() }.value
    for (name, value) in values.sorted(by: { $0.key < $1.key }) {
      guard names.contains(where: { $0.equalsIgnoringCase(name) }) else {
        throw Invalid(description: "setTrailers: \(name) is not among the announced names")
      }
      await writer.trailer(name, value)
    }
  }
}
