import Foundation
import LarkspurHTTP

/// What a task is to do about its cache, before anything is sent.
enum CachePlan: Sendable {
  /// Send the request, with the fields of the exchange added.
  case load(CacheExchange)
  /// The same; a 304 may come that the caller must not see. ``URLCache/received(_:for:now:)`` sees to that.
  case validate(CacheExchange)
  /// Do not send anything: this is the response.
  indirect case serve(CacheAnswer)
  /// Neither send anything nor answer.
  case fail(URLError.Code)

  /// What to send.
  var exchange: CacheExchange? {
    switch self {
    case .load(let exchange), .validate(let exchange): exchange
    case .serve, .fail: nil
    }
  }
}

/// A request that goes to its server, and what the cache has to know when the answer comes. One for each hop of a
/// redirection, and a new one for a request that is repeated with credentials.
///
/// (An object, as what comes of it: most tasks have none, and should not hold room for it.)
final class CacheExchange: Sendable {
  let url: URL
  let request: CacheRequest
  /// The fields that the cache adds to those of the request. None has a name that the request has already.
  let addedFields: CacheFields
  /// When the request was sent, in seconds since 1970.
  let requestTime: Double
  /// The stored response that is validated, or that may stand in if the server fails.
  let candidate: CachedURLResponse?
  let isValidated: Bool
  /// By what a program's own cache is asked. Nil: it is no such cache.
  let subject: CacheSubject?

  init(
    url: URL, request: CacheRequest, requestTime: Double, candidate: CachedURLResponse? = nil,
    isValidated: Bool = false, addedFields: CacheFields = [], subject: CacheSubject? = nil
  ) {
    self.url = url
    self.request = request
    self.requestTime = requestTime
    self.candidate = candidate
    self.isValidated = isValidated
    self.addedFields = addedFields
    self.subject = subject
  }

  var key: String? { key(of: url, method: request.method) }

  /// That of the answer to a GET for a URL.
  func keyOfGet(for other: URL) -> String? { key(of: other, method: "GET") }

  /// The request's `Host` counts for its own host only.
  private func key(of other: URL, method: String) -> String? {
    let isSameHost = other.host() == url.host() && other.port == url.port
    return CacheKey.make(
      method: method, uri: other.absoluteString, host: isSameHost ? request.fields.firstValue(named: "Host") : nil)
  }
}

/// A response out of the cache.
struct CacheAnswer: Sendable {
  /// As the caller is to see it, with its `Age`.
  var response: HTTPURLResponse
  /// The content of this response: of a HEAD or a 304 none, of a range the part.
  var data: Data
  var isStale = false
  /// The server answered that it still holds. Nil in ``CachePlan/serve(_:)``.
  var isValidated = false
  /// The answer may be used while it is validated (RFC 5861 3): what validates it. A session makes a request of its own
  /// for that, whose answer nobody is shown.
  var refresh: CacheExchange?
}

/// What a task is to do with the head of an answer.
enum CacheVerdict: Sendable {
  /// Show it, and read the body.
  case deliver
  /// The same. Keep the body as well, up to the limit, and offer it to ``URLCache/store(_:for:)`` when it is
  /// complete.
  case deliverAndStore(CacheStoring)
  /// Show this instead. Drop the body of the answer, if it has any.
  indirect case useStored(CacheAnswer)
}

/// A response that may be stored once its body is complete.
final class CacheStoring: Sendable {
  let exchange: CacheExchange
  let proposal: CacheStorage.Proposal
  let response: HTTPURLResponse
  /// When its head came, in seconds since 1970.
  let responseTime: Double
  /// A body of more bytes than this is not stored: there is no need to keep it.
  let bodyBytesMax: Int

  init(
    _ exchange: CacheExchange, _ proposal: CacheStorage.Proposal, of response: HTTPURLResponse, at responseTime: Double,
    bodyBytesMax: Int
  ) {
    self.exchange = exchange
    self.proposal = proposal
    self.response = response
    self.responseTime = responseTime
    self.bodyBytesMax = bodyBytesMax
  }

  /// What the delegate is asked about (`willCacheResponse`).
  ///
  /// - Parameter data: As the caller sees it: with its coding undone, if the session does that.
  func proposed(_ data: Data) -> CachedURLResponse { CachedURLResponse(response: response, data: data) }

  /// What is stored, if the delegate wants `cached`.
  func entry(_ cached: CachedURLResponse, key: String) -> CachedURLResponse? {
    guard let http = cached.response as? HTTPURLResponse else { return cached.prepared(key: key, now: responseTime) }
    // RFC 9111 3.3: a body that is not what its head says is not complete.
    if let part = proposal.part, part.bytes.count != cached.data.count { return nil }
    let isOwn = http === response
    // What the delegate gives is as the session has given it.
    let isDecoded = response.isDecoded && !http.fields.values(of: "Content-Encoding").isEmpty
    let stored = StoredResponse(
      status: http.statusCode,
      fields: isOwn
        ? proposal.fields
        : CacheStorage.storable(http.fields.list, now: responseTime),
      requestTime: exchange.requestTime, responseTime: responseTime, selection: proposal.selection,
      part: proposal.part, bodyCount: cached.data.count, isDecoded: isDecoded)
    return cached.with(CachedURLResponse.Origin(key: key, stored: stored, storedTime: responseTime))
  }
}
