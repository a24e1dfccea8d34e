// The decisions on final responses.

extension ResumableUploadMachine {
  // MARK: - Creation

  /// Decides on the response to the creation (section 4.2.1).
  mutating func created(_ response: UploadResponse, _ now: Double, _ fraction: Double) -> Action {
    guard isExpressible else { return deliver(response) }
    if response.isSuccess {
      return isFinal ? createdWhole(response, now, fraction) : createdPart(response, now)
    }
    if response.isComplete == true { return deliver(response) }
    if response.status == 413, let action = reducedCreation(response, now) { return action }
    guard resource != nil, settings.retry.continues(after: response.status) || isConflict(response) else {
      return deliver(response)
    }
    return wait(response.retryAfter, now, fraction, orElse: .deliver)
  }

  /// Decides on a success after all bytes have been sent in the creation.
  private mutating func createdWhole(_ response: UploadResponse, _ now: Double, _ fraction: Double) -> Action {
    if response.isComplete == true, version.hasLimits { return deliver(response) }
    guard response.isComplete == false else {
      // Draft 01, section 4: a success whose offset is not the end is a failure.
      if let offset = response.offset, offset != length { return stop(.offsetMismatch(offset)) }
      return deliver(response)
    }
    // The server contradicts itself: a success, and not complete. Its offset shows what it has.
    if resource == nil, let location = response.location, mayUse(location, from: response.url) { resource = location }
    guard resource != nil else { return close(.fail(.neverCompleted)) }
    return wait(response.retryAfter, now, fraction, orElse: .fail(.neverCompleted))
  }

  /// Decides on a success after the first part has been sent in the creation.
  private mutating func createdPart(_ response: UploadResponse, _ now: Double) -> Action {
    if response.isComplete == true { return completedEarly(response) }
    if let location = response.location {
      if let resource, resource != location { return stop(.locationChanged) }
      guard mayUse(location, from: response.url) else { return end(.noLocation) }
      resource = location
    }
    guard resource != nil else { return close(.fail(.noLocation)) }
    target = resource
    return appendedPart(response, now)
  }

  /// Decides on a response that completes the upload before its last byte has been sent. Draft 13, section 4.1.2: the
  /// server may know enough.
  private mutating func completedEarly(_ response: UploadResponse) -> Action {
    version.isOfDraft12 ? deliver(response) : end(.completedTooEarly)
  }

  /// Whether the response to a creation asks the client to continue (draft 13, section 4.7).
  private func isConflict(_ response: UploadResponse) -> Bool {
    version.isOfDraft12 && response.status == 409 && response.isComplete == false
  }

  /// Decides on a 413 to the creation: another creation with less content, if the server names a limit that a smaller
  /// request keeps (section 4.1.4).
  private mutating func reducedCreation(_ response: UploadResponse, _ now: Double) -> Action? {
    guard let most = response.limits?.maxAppendSize, most < content.count, reductionCount < Self.reductionsMax else {
      return nil
    }
    let before = (limits, expiry)
    learn(response, now)
    let part = limits.nextContent(from: 0, length: length, most: settings.contentMax)
    guard limitFailure == nil, part != nil else {
      (limits, expiry) = before
      return nil
    }
    if resource != nil { return reduced(now) }
    reductionCount += 1
    expiry = nil
    return create()
  }

  // MARK: - Offset retrieval

  /// Decides on the response to HEAD (section 4.3.1).
  mutating func retrieved(_ response: UploadResponse, _ now: Double, _ fraction: Double) -> Action {
    switch response.status {
    case 200..<300:
      guard let offset = response.offset else { return stop(.noOffset) }
      if let theirs = response.length, theirs != length { return stop(.lengthMismatch(theirs)) }
      // Draft 13, section 4.1.2: the server may have completed the upload before its last byte.
      if response.isComplete == true, version.isOfDraft12, offset <= length {
        resource = nil
        return close(.deliverRetrieval)
      }
      if let fault = fault(of: offset) { return stop(fault) }
      advance(to: offset)
      if response.isComplete == true {
        guard offset == length else { return end(.completedTooEarly) }
        resource = nil
        return close(.deliverRetrieval)
      }
      learn(response, now)
      if let failure = limitFailure { return stop(failure) }
      return append(from: offset)
    case 307, 308: return redirected(response)
    case 404, 410: return lose(.resourceGone(status: response.status))
    default: return retried(response, now, fraction)
    }
  }

  // MARK: - Append

  /// Decides on the response to PATCH (section 4.4.1).
  mutating func appended(_ response: UploadResponse, _ now: Double, _ fraction: Double) -> Action {
    // Section 4.4.1: whatever the status, the response comes from the resource of the program's request.
    if response.isComplete == true {
      if isFinal, version.hasLimits || response.isSuccess { return appendedWhole(response, now, fraction) }
      if !isFinal { return completedEarly(response) }
    }
    switch response.status {
    case 200..<300:
      if isFinal { return appendedWhole(response, now, fraction) }
      // Draft 13, section 4.1.1: only a false `Upload-Complete` acknowledges the bytes.
      if version.isOfDraft12, response.isComplete == nil {
        return wait(nil, now, fraction, orElse: .fail(.status(response.status)))
      }
      return appendedPart(response, now)
    case 307, 308: return redirected(response)
    case 404, 410: return lose(.resourceGone(status: response.status))
    case 409:
      // Draft 13, section 4.7: the conflict is not about the offset.
      if version.isOfDraft12, response.isComplete != false { return close(.fail(.status(409))) }
      if let offset = response.offset, let fault = fault(of: offset) { return stop(fault) }
      return wait(response.retryAfter, now, fraction, orElse: .fail(.status(409)))
    case 413:
      let size = content.count
      learn(response, now)
      if let failure = limitFailure { return stop(failure) }
      return limits.maxAppendSize ?? .max < size ? reduced(now) : close(.fail(.status(413)))
    default: return retried(response, now, fraction)
    }
  }

  /// Decides on a response after which the upload is complete, or on a success that has to make it so.
  private mutating func appendedWhole(_ response: UploadResponse, _ now: Double, _ fraction: Double) -> Action {
    switch version {
    case .interop3:
      // Draft 01, section 6: a success without a true `Upload-Incomplete` completes the upload.
      if response.isComplete == false { break }
      if let offset = response.offset, offset != length { return stop(.offsetMismatch(offset)) }
      return deliver(response)
    case .interop8, .interop9, .interop10:
      // A success without `Upload-Complete: ?1` does not complete the upload.
      if response.isComplete == true { return deliver(response) }
    }
    return wait(response.retryAfter, now, fraction, orElse: .fail(.neverCompleted))
  }

  /// Decides on a success after a part has been sent, and sends the next one.
  private mutating func appendedPart(_ response: UploadResponse, _ now: Double) -> Action {
    if let offset = response.offset, offset != content.upperBound { return stop(.offsetMismatch(offset)) }
    advance(to: content.upperBound)
    learn(response, now)
    if let failure = limitFailure { return stop(failure) }
    return append(from: content.upperBound)
  }

  // MARK: - Both

  /// Follows a redirection of the upload resource, with the same method and content (sections 4.3.1 and 4.4.1). Only a
  /// permanent redirection is stored (draft 01, section 10). A redirection from another origin to the origin of the
  /// program's request fails: the other server could choose the URL that is requested, or deleted, with the program's
  /// credentials.
  private mutating func redirected(_ response: UploadResponse) -> Action {
    guard let location = response.location, mayUse(location, from: response.url),
      isOwn(response.url) || !isOwn(location), redirectCount < settings.redirectsMax
    else { return close(.fail(.redirection)) }
    redirectCount += 1
    target = location
    if response.status == 308 { resource = location }
    return redirectedRequest()
  }

  private mutating func retried(_ response: UploadResponse, _ now: Double, _ fraction: Double) -> Action {
    let failure = Action.fail(.status(response.status))
    guard settings.retry.continues(after: response.status) else {
      // Draft 01 does not state whose response this is: after the last byte it may be the program's.
      return version == .interop3 && state == .appending && isFinal ? deliverRefusal() : close(failure)
    }
    return wait(response.retryAfter, now, fraction, orElse: failure)
  }
}
