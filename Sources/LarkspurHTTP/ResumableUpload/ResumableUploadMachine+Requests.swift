// The requests that the machine sends, and its decisions to wait and to end.

extension ResumableUploadMachine {
  // MARK: - Requests

  mutating func create() -> Action {
    state = .creating
    guard isExpressible else {
      content = 0..<length
      return .send(UploadRequest(kind: .creation, url: nil, fields: [], content: content))
    }
    guard limitFailure == nil, let part = firstContent else { return close(.fail(.limits(limits))) }
    content = part
    return .send(
      UploadRequest(
        kind: .creation, url: nil, fields: version.transferFields(offset: nil, length: length, isFinal: isFinal),
        content: content))
  }

  /// The content of the creation. Without knowledge of the server, all bytes: another server would take a part for the
  /// whole (draft 01, section 4.1; draft 10, section 12.1).
  private var firstContent: Range<Int>? {
    settings.knownLimits == nil && reductionCount == 0
      ? 0..<length : limits.nextContent(from: 0, length: length, most: settings.contentMax)
  }

  mutating func retrieve(_ now: Double) -> Action {
    if let expiry, now >= expiry { return end(.expired) }
    state = .retrieving
    target = resource
    redirectCount = 0
    return .send(request(.offsetRetrieval, fields: version.fields))
  }

  mutating func append(from offset: Int) -> Action {
    guard let next = limits.nextContent(from: offset, length: length, most: settings.contentMax) else {
      return stop(.limits(limits))
    }
    content = next
    redirectCount = 0
    return sendAppend()
  }

  func redirectedRequest() -> Action {
    state == .retrieving ? .send(request(.offsetRetrieval, fields: version.fields)) : .send(appendRequest)
  }

  private mutating func sendAppend() -> Action {
    state = .appending
    return .send(appendRequest)
  }

  private var appendRequest: UploadRequest {
    request(
      .append, fields: version.transferFields(offset: content.lowerBound, length: length, isFinal: isFinal),
      content: content)
  }

  /// Deletes the upload resource, unless there is none, or it has another origin: a server must not make a client
  /// delete what belongs to another server, whatever the owner has agreed to.
  mutating func sendCancellation() -> Action? {
    guard let resource, isOwn(resource) else { return nil }
    state = .cancelling
    target = resource
    self.resource = nil
    return .send(request(.cancellation, fields: version.fields))
  }

  private func request(
    _ kind: UploadRequest.Kind, fields: FieldList, content: Range<Int> = 0..<0
  ) -> UploadRequest {
    var request = UploadRequest(kind: kind, url: target, fields: fields, content: content)
    request.leavesOrigin = target.map { !isOwn($0) } ?? false
    return request
  }

  // MARK: - URLs

  /// Returns the scheme, host and port of a URL of HTTP in normal form, or `nil` for another URL.
  static func origin(of url: String) -> String? {
    let parts = URLResolution.Parts(url)
    guard let scheme = parts.scheme?.lowercased(), let authority = parts.authority else { return nil }
    let port = scheme == "https" ? ":443" : ":80"
    guard scheme == "https" || scheme == "http" else { return nil }
    var host = (authority.split(separator: "@", omittingEmptySubsequences: false).last ?? "").lowercased()
    if host.hasSuffix(":") { host.removeLast() }
    if host.hasSuffix(port) { host.removeLast(port.utf8.count) }
    return host.isEmpty ? nil : "\(scheme)://\(host)"
  }

  // MARK: - Knowledge

  mutating func learn(_ response: UploadResponse, _ now: Double) {
    guard let new = response.limits else { return }
    limits = new
    if version.isOfDraft12 {
      // Draft 13, section 4.1.4: a smaller representation may be accepted all the same, and so may a later request.
      limits.minSize = nil
    } else if let age = new.maxAge {
      expiry = now + Double(age)
    }
  }

  var limitFailure: UploadFailure? { limits.allow(length: length) ? nil : .limits(limits) }

  /// Returns the reason for which the server's offset cannot be used.
  func fault(of offset: Int) -> UploadFailure? {
    if offset > length { return .offsetBeyondEnd(offset) }
    // Section 4.1.1: the offset must not decrease.
    if offset < acknowledged { return .offsetDecreased(offset) }
    return offset > sent && !version.allowsUnsentOffsets ? .offsetBeyondSent(offset) : nil
  }

  /// The server has acknowledged an offset that has no fault. New bytes end a series of failures.
  mutating func advance(to offset: Int) {
    if offset > acknowledged { failureCount = 0 }
    acknowledged = offset
  }

  // MARK: - Ends

  /// Ends the request in flight, and continues with smaller ones.
  mutating func reduced(_ now: Double) -> Action {
    reductionCount += 1
    return reductionCount > Self.reductionsMax ? stop(.limits(limits)) : retrieve(now)
  }

  /// Waits before the next try.
  ///
  /// - Parameter last: The action in place of a wait if there were too many failures. The point remains.
  mutating func wait(_ retryAfter: Double?, _ now: Double, _ fraction: Double, orElse last: Action) -> Action {
    failureCount += 1
    if settings.retry.isOver(failureCount) { return last == .deliver ? deliverRefusal() : close(last) }
    let delay = settings.retry.delay(failureCount, retryAfter: retryAfter, fraction: fraction)
    if let expiry, now + delay.inSeconds >= expiry { return end(.expired) }
    state = .waiting
    return .wait(delay)
  }

  /// Ends the upload with a failure, and cancels the upload resource, if it may.
  mutating func stop(_ failure: UploadFailure) -> Action {
    guard let action = sendCancellation() else { return end(failure) }
    pendingFailure = failure
    return action
  }

  /// Ends the upload with a failure of its upload resource. If the server has had all bytes it may have completed the
  /// upload, so that only the response is lost: the point stays, and the upload does not start over.
  mutating func lose(_ failure: UploadFailure) -> Action {
    acknowledged == length ? close(.fail(failure)) : end(failure)
  }

  /// Ends the upload with a failure after which it cannot continue.
  mutating func end(_ failure: UploadFailure) -> Action {
    resource = nil
    return close(.fail(failure))
  }

  /// Delivers a response, which completes the upload if it is a success behind the last byte.
  mutating func deliver(_ response: UploadResponse) -> Action {
    guard response.isSuccess, isFinal, resource != nil else { return deliverRefusal() }
    // If the connection is lost in the response's content, the upload resource can report that the upload is complete.
    advance(to: length)
    return close(.deliver)
  }

  /// Delivers a response after which the upload cannot continue.
  mutating func deliverRefusal() -> Action {
    resource = nil
    return close(.deliver)
  }

  /// The server has answered a cancellation, or has not: it may not support one (draft 01, section 7).
  mutating func cancelled() -> Action { close(pendingFailure.map { Action.fail($0) } ?? .finish) }

  mutating func close(_ action: Action) -> Action {
    state = .closed
    return action
  }
}
