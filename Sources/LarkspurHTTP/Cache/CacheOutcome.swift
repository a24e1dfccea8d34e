/// What the answer to a request does to a cache: the writing side of RFC 9111, but for the storing itself.
public enum CacheOutcome: Sendable {
  /// The answer is for the caller. The cache stays as it is.
  case deliver
  /// The answer is for the caller, and may be stored.
  case store(CacheStorage.Proposal)
  /// The answer is for the caller, and tells that the candidate still holds: keep it in this form.
  case freshen(StoredResponse)
  /// The answer is for the caller, and tells that the candidate is no more.
  case discard
  /// The caller gets the candidate, in this form; it is kept so.
  case confirmed(StoredResponse)
  /// The caller gets the candidate, in this form; it is not kept, for the answer is about something else.
  case confirmedOnce(StoredResponse)
  /// The caller gets the candidate in place of the failure.
  case standIn
  /// The answer is for the caller. Everything under the target's key goes, and under those of these references if
  /// they are of the same origin (RFC 9111 4.4).
  case invalidate(references: [String])

  /// - Parameters:
  ///   - isValidated: The request was made conditional on the candidate.
  ///   - isWanted: The answer may be stored even if nothing says how long it is fresh or how to validate it.
  ///   - requestTime: When the request was sent, in seconds since 1970.
  ///   - now: When the head of the answer came.
  public static func received(
    status: Int, fields: CacheFields, for request: CacheRequest, candidate: StoredResponse?, isValidated: Bool,
    isWanted: Bool = false, requestTime: Double, now: Double
  ) -> CacheOutcome {
    guard request.isSafe else {
      // RFC 9111 4.4: an error means that nothing was done.
      guard 200..<400 ~= status else { return .deliver }
      return .invalidate(
        references: ["Location", "Content-Location"].compactMap { fields.firstValue(named: $0) })
    }
    if let candidate {
      // RFC 9111 5.2.2.5: nothing of this answer may be stored, and so the candidate cannot be kept in its new form.
      let isKept = CacheStorage.allowsStoring(CacheControl(fields), status: candidate.status)
      if status == 304, request.isGet {
        let freshened = candidate.freshened(by: fields, requestTime: requestTime, responseTime: now)
        if isValidated {
          // Of news about something else the candidate learns nothing (RFC 9111 4.3.4).
          guard candidate.isDescribed(by: fields) else { return .confirmedOnce(candidate) }
          return isKept ? .confirmed(freshened) : .confirmedOnce(freshened)
        }
        // The caller's own condition: only a validator shows that he and we have the same.
        guard candidate.isShared(with: fields) else { return .deliver }
        return isKept ? .freshen(freshened) : .discard
      }
      if CacheStatus.isServerFailure(status), candidate.mayStandIn(for: request, now: now) { return .standIn }
      if request.isHead, status == 200 {
        return isKept && candidate.isConfirmed(byHead: fields)
          ? .freshen(candidate.freshened(by: fields, requestTime: requestTime, responseTime: now)) : .discard
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
