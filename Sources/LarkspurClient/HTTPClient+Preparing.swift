import LarkspurHTTP
import LarkspurTransport

extension HTTPClient {
  /// Opens connections to the host of a URL before requests need them: looks up the name, connects, and makes the TLS
  /// handshake. Returns when those that are being opened are open or have failed.
  ///
  /// Requests use the connections as if earlier requests had left them. The limits of the client's pool hold, and no connection to
  /// another host is closed. Unused connections close after the pool's idle time. curl has no such call.
  ///
  /// - Parameters:
  ///   - url: A URL of the scheme `http` or `https` as text. Path and query do not count.
  ///   - count: The number of connections to have, including those in use.
  /// - Returns: The number of connections to the host, which the limits may keep below `count`.
  /// - Throws: The error of the latest attempt if there is no connection, ``HTTPClientError/Code/invalidURL`` for another URL,
  ///   and ``HTTPClientError/Code/invalidOption`` for a `count` below 1.
  @discardableResult
  public func prepareConnections(to url: String, count: Int = 1) async throws(HTTPClientError) -> Int {
    guard count > 0 else {
      throw HTTPClientError(.invalidOption, "prepareConnections(to:count:): the count has to be above zero", url: url)
    }
    let engine = try engine.get()
    let target: LoadTarget
    do throws(LoadTarget.Invalid) {
      target = try LoadTarget(url) { nil }
    } catch {
      throw HTTPClientError(error, url: url)
    }
    do throws(TransportError) {
      return try await engine.prepare(count, to: target)
    } catch {
      throw HTTPClientError(error, url: url)
    }
  }
}

extension ClientEngine {
  fileprivate func prepare(_ count: Int, to target: LoadTarget) async throws(TransportError) -> Int {
    let result = await loop.run { [self] () async -> Result<Int, TransportError> in
      do throws(TransportError) {
        let route =
          if let known = knownRoute(to: target, tunnels: false) {
            known
          } else {
            try await route(to: target, tunnels: false)
          }
        return .success(try await pool.prepare(count, of: route.endpoint))
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }
}
