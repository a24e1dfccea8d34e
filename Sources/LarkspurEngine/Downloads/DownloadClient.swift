import LarkspurHTTP

/// The part of a client that a download needs: requests, their heads, and the pieces of their bodies as they are asked for.
package protocol DownloadClient: Sendable {
  /// The client's limit of connections for each host.
  var downloadLanesMax: Int { get }

  /// Sends a GET, follows redirections, and answers challenges. The body is not decoded. Cancelled with its task.
  ///
  /// - Parameters:
  ///   - url: The URL as text.
  ///   - fields: The request's fields. They name the only coding of the content that is accepted.
  ///   - head: Called with the status and the fields of the response. Returns whether the body is wanted.
  ///   - piece: Called with each piece of the body. No further bytes are read before it returns. Returns whether more of
  ///     the body is wanted.
  /// - Throws: The client's own error if the body does not come to its end.
  func fetch(
    _ url: String, _ fields: FieldList, head: (Int, FieldList) -> Bool, piece: ([UInt8]) async -> Bool
  ) async throws

  /// Whether the connection or the server's absence is the reason of an error, so that another attempt may succeed.
  func isOfConnection(_ error: any Error) -> Bool
}
