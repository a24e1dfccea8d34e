/// The effect of a server's response on the cache: the writing side of RFC 9111, without the storing itself. In the
/// cases below, the answer is the server's response, and the candidate is the stored response.
public enum CacheOutcome: Sendable {
  /// Deliver the answer. The cache does not change.
  case deliver
  /// Deliver the answer, and store it.
  case store(CacheStorage.Proposal)
  /// Deliver the answer. The candidate is still valid: store it in this form.
  case freshen(StoredResponse)
  /// Deliver the answer. The candidate is not valid any more, or must not be stored in its new form: remove it.
  case discard
  /// Deliver the candidate in this form, and store it in this form.
  case confirmed(StoredResponse)
  /// Deliver the candidate in this form, and do not store it: the answer describes another response, or has a
  /// `no-store`.
  case confirmedOnce(StoredResponse)
  /// Deliver the candidate in place of the failure.
  case standIn
  /// Deliver the answer. Remove all responses under the target's key, and under the keys of these references if they
  /// are of the target's origin (RFC 9111 4.4).
  case invalidate(references: [String])

  /// Decides on a server's response.
  ///
  /// - Parameters:
  ///   - isValidated: Whether the request was made conditional on the candidate.
  ///   - isWanted: Whether the answer may be stored even if it names neither a lifetime nor a validator.
  ///   - requestTime: The time at which the request was sent, in seconds since 1970.
  ///   - now: The time at which the head of the answer came, in seconds since 1970.
  public static func received(
    status: Int, fields: CacheFields, for request: CacheRequest, candidate: StoredResponse?, isValidated: Bool,
    isWanted: Bool = false, requestTime: Double, now: Double
  ) -> CacheOutcome {
    guard request.isSafe else {
      // RFC 9111 4.4: an error means that the request has changed nothing.
      guard 200..<400 ~= status else { return .deliver }
      return .invalidate(
        references: ["Location", "Content-Location"].compactMap { fields.firstValue(named: $0) })
    }
    if let candidate {
      // RFC 9111 5.2.2.5: with `no-store` no part of this answer may be stored, so the candidate cannot be stored with
      // its new fields.
      let control = CacheControl(fields)
      let isKept = CacheStorage.allowsStoring(control, status: candidate.status)
      if status == 304, request.isGet {
        let freshened = candidate.freshened(by: fields, control, requestTime: requestTime, responseTime: now)
        if isValidated {
          // A 304 about another response does not change the candidate (RFC 9111 4.3.4).
          guard candidate.isDescribed(by: fields) else { return .confirmedOnce(candidate) }
          return isKept ? .confirmed(freshened) : .confirmedOnce(freshened)
        }
        // The condition is the caller's own: only a validator shows that the caller and the cache have the same
        // response.
        guard candidate.isShared(with: fields) else { return .deliver }
        return isKept ? .freshen(freshened) : .discard
      }
      if CacheStatus.isServerFailure(status), candidate.mayStandIn(for: request, now: now) { return .standIn }
      if request.isHead, status == 200 {
        return isKept && candidate.isConfirmed(byHead: fields)
          ? .freshen(candidate.freshened(by: fields, control, requestTime: requestTime, responseTime: now)) : .discard
      }
    }
    guard
      let proposal = CacheStorage.proposal(
        request: request, status: status, fields: fields, isWanted: isWanted || request.policy == .storedElseLoad,
        now: now)
    else { return .deliver }
    return .store(proposal)
  }
}

extension StoredResponse {
  fileprivate func isShared(with other: CacheFields) -> Bool {
    if let tag = other.firstValue(named: "ETag"), let own = entityTag { return EntityTag.isWeaklyEqual(tag, own) }
    guard let date = other.firstValue(named: "Last-Modified") else { return false }
    return date == lastModified && !other.contains(named: "ETag")
  }
}
