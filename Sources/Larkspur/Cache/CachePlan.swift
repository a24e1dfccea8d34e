import Foundation
import LarkspurHTTP

/// The cache's decision about a request before anything is sent.
enum CachePlan: Sendable {
  /// Send the request, with the fields of the exchange added.
  case load(CacheExchange)
  /// Send the request, with the fields of the exchange added. The response may be a 304 that the caller must not see;
  /// ``URLCache/received(_:for:isWanted:now:)`` handles it.
  case validate(CacheExchange)
  /// Deliver this response and send nothing.
  indirect case serve(CacheAnswer)
  /// Fail with this error and send nothing.
  case fail(URLError.Code)

  /// The exchange of a request that is sent, or `nil` if nothing is sent.
  var exchange: CacheExchange? {
    switch self {
    case .load(let exchange), .validate(let exchange): exchange
    case .serve, .fail: nil
    }
  }
}

/// A request that is sent to its server, and the data that the cache needs when the response arrives. Each hop of a
/// redirect has its own, and so has a request that is repeated with credentials.
///
/// Performance: this is a class, so that the many tasks without an exchange hold only a reference.
final class CacheExchange: Sendable {
  let url: URL
  let request: CacheRequest
  /// The fields that the cache adds to those of the request. The request has none with the same name.
  let addedFields: FieldList
  /// The time at which the request was sent, in seconds since 1970.
  let requestTime: Double
  /// The stored response that is validated, or that may be delivered if the server fails.
  let candidate: CachedURLResponse?
  let isValidated: Bool
  /// The subject for a subclass of the cache, or `nil` if the cache is not a subclass.
  let subject: CacheSubject?

  init(
    url: URL, request: CacheRequest, requestTime: Double, candidate: CachedURLResponse? = nil,
    isValidated: Bool = false, addedFields: FieldList = [], subject: CacheSubject? = nil
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

  /// Returns the key of the response to a GET of a URL.
  func keyOfGet(for other: URL) -> String? { key(of: other, method: "GET") }

  /// Uses the request's `Host` only for the request's own host.
  private func key(of other: URL, method: String) -> String? {
    let host = request.fields.firstValue(named: "Host")
    let isSameHost = host != nil && other.host() == url.host() && other.port == url.port
    return CacheKey.make(method: method, uri: other.absoluteString, host: isSameHost ? host : nil)
  }
}

/// A response from the cache.
struct CacheAnswer: Sendable {
  /// The response for the caller, with its `Age`.
  var response: HTTPURLResponse
  /// The body of this response: empty for a HEAD or a 304, the part for a range.
  var data: Data
  var isStale = false
  /// Whether the server has confirmed the response. `false` in ``CachePlan/serve(_:)``.
  var isValidated = false
  /// The exchange that validates a stale response which is delivered meanwhile (RFC 5861 3), or `nil` if there is no
  /// need. The session sends a separate request for it, and does not deliver that request's response.
  var refresh: CacheExchange?
}

/// The cache's decision about the head of a response.
enum CacheVerdict: Sendable {
  /// Deliver the response and read its body.
  case deliver
  /// Deliver the response, and keep its body up to the limit. When the body is complete, pass it to
  /// ``URLCache/store(_:for:)``.
  case deliverAndStore(CacheStoring)
  /// Deliver this response instead. Drop the body of the server's response, if there is one.
  indirect case useStored(CacheAnswer)
  /// Drop the response, and send the request again without a condition.
  case reload
}

/// A response that may be stored once its body is complete.
final class CacheStoring: Sendable {
  let exchange: CacheExchange
  let proposal: CacheStorage.Proposal
  let response: HTTPURLResponse
  /// The time at which the head arrived, in seconds since 1970.
  let responseTime: Double
  /// Maximum number of bytes of a body to store. A longer body need not be kept.
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

  /// Returns the proposal for the delegate (`willCacheResponse`).
  ///
  /// - Parameter data: The body as the caller sees it: with its coding undone, if the session does that.
  func proposed(_ data: Data) -> CachedURLResponse { CachedURLResponse(response: response, data: data) }

  /// Returns the entry to store if the delegate accepts `cached`, or `nil` if a part's body is not complete, or the
  /// delegate's response answers no request.
  func entry(_ cached: CachedURLResponse, key: String) -> CachedURLResponse? {
    guard let http = cached.response as? HTTPURLResponse else {
      return cached.prepared(key: key, for: exchange.request.fields, now: responseTime)
    }
    let isOwn = http === response
    // The delegate's body is in the form that the session gave it.
    let isDecoded = response.isDecoded && !http.fields.values(of: "Content-Encoding").isEmpty
    var (fields, selection) = (proposal.fields, proposal.selection)
    if !isOwn {
      fields = CacheStorage.storable(http.fields.list, now: responseTime)
      // A delegate that replaces the fields may leave out the server's `Vary`, which still distinguishes requests.
      let vary = proposal.fields.values(named: "Vary").map { Field("Vary", $0) }
      guard let changed = CacheSelection(response: fields + vary, request: exchange.request.fields) else { return nil }
      selection = changed
    }
    let stored = StoredResponse(
      statedBy: http.statusCode, fields: fields, requestTime: exchange.requestTime, responseTime: responseTime,
      selection: selection, bodyCount: cached.data.count, isDecoded: isDecoded)
    guard let stored else { return nil }
    return cached.with(CachedURLResponse.Origin(key: key, stored: stored, storedTime: responseTime))
  }
}
