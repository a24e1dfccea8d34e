import LarkspurEngine

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
