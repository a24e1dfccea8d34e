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
  /// The answer may confirm another response than the candidate: remove the candidate, and send the request again.
  case reload
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
    status: Int, fields: FieldList, for request: CacheRequest, candidate: StoredResponse?, isValidated: Bool,
    isWanted: Bool = false, requestTime: Double, now: Double
  ) -> CacheOutcome {
    guard request.isSafe else {
      // RFC 9111 4.4: an error means that the request has changed nothing.
      guard 200..<400 ~= status else { return .deliver }
      return .invalidate(
        references: ["Location", "Content-Location"].compactMap { fields.firstValue(named: $0) })
    }
    if let candidate {
      func renewed(isSame: Bool) -> (StoredResponse, StoredResponse.Use) {
        candidate.renewed(by: fields, for: request, isSame: isSame, requestTime: requestTime, now: now)
      }
      switch status {
      case 304 where request.isGet && isValidated:
        // A 304 about another response does not change the candidate (RFC 9111 4.3.4).
        guard candidate.isDescribed(by: fields) else { return .confirmedOnce(candidate) }
        switch renewed(isSame: candidate.entityTag != nil) {
        case (let renewed, .kept): return .confirmed(renewed)
        case (let renewed, .once): return .confirmedOnce(renewed)
        case (_, .none): return .reload
        }
      case 304 where request.isGet, 200 where request.isHead:
        if request.isHead {
          guard candidate.isConfirmed(byHead: fields) else { return .discard }
        } else {
          // The condition is the caller's own: only a validator shows that the caller and the cache have the same
          // response.
          guard candidate.isShared(with: fields) else { return .deliver }
        }
        guard case (let renewed, .kept) = renewed(isSame: candidate.hasTag(of: fields)) else { return .discard }
        return .freshen(renewed)
      case _ where CacheStatus.isServerFailure(status) && candidate.mayStandIn(for: request, now: now):
        return .standIn
      default: break
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
  fileprivate enum Use { case kept, once, none }

  /// Returns the response with the fields of an answer that confirms it, and the use that the fields permit. The
  /// selection, and whether the response may be stored, are derived from the new fields.
  ///
  /// - Parameter isSame: Whether an entity tag shows that this is the response to `request`. A date does not: it may be
  ///   the date of another response, if a field of `Vary` distinguishes the requests that brought the two.
  fileprivate func renewed(
    by other: FieldList, for request: CacheRequest, isSame: Bool, requestTime: Double, now: Double
  ) -> (StoredResponse, Use) {
    var renewed = freshened(by: other, requestTime: requestTime, responseTime: now)
    let derived = CacheSelection(response: renewed.fields, request: request.fields)
    guard isSame || derived?.names.isSubset(of: selection.names) == true else { return (self, .none) }
    guard let derived, CacheStorage.allowsStoring(renewed.control, status: status, request) else {
      return (renewed, .once)
    }
    renewed.selection = derived
    return (renewed, .kept)
  }

  fileprivate func hasTag(of other: FieldList) -> Bool {
    guard let tag = other.firstValue(named: "ETag"), let own = entityTag else { return false }
    return EntityTag.isWeaklyEqual(tag, own)
  }

  fileprivate func isShared(with other: FieldList) -> Bool {
    if hasTag(of: other) { return true }
    guard !other.contains(named: "ETag"), let date = other.firstValue(named: "Last-Modified") else { return false }
    return date == lastModified
  }
}
