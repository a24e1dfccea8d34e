import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// Sends the request.
///
/// A small request is one queue, which is sent at once. Any other body is an `Upload`: its next piece is fetched when
/// the piece before it has been sent, within the channel's share of the tick and the rate limit. So no more than a
/// piece of a file or of a producer's body is queued at a time.
extension ConnectionCore {
  /// Larger bodies leave piece by piece.
  private static let smallBodyBytesMax = 64 * 1024
  /// The number of bytes of a file, or of the caller's memory, that are queued at once.
  private static let pieceBytesMax = 64 * 1024

  // MARK: - Starting

  /// Queues a request and sends as much of it as the kernel takes.
  mutating func start(
    _ request: RequestHead, body: [UInt8], deadline: Deadline
  ) throws(TransportError) -> UInt64 {
    let channel = try openChannel()
    guard request.allows(bodyBytes: body.count) else { throw .localMisuse(.bodyLengthWrong) }
    let isSmall = body.count <= Self.smallBodyBytesMax && !request.context.expectsContinue && !request.isChunked
    guard isSmall, !pace.isLimited else {
      return try start(request, body: .bytes(body), timeouts: Timeouts(), deadline: deadline)
    }
    try prepare(channel, for: request, mayBeSentAgain: request.mayBeSentAgain)
    sender = .queue
    isTimed = false
    expects100Continue = false
    record.requestHeadBytes = request.bytes.count
    record.requestBodyBytes = body.count
    output.append(request.bytes)
    if !body.isEmpty { output.append(body) }
    if isObserved { copies.begin(.bytes(body), .none, on: loop) }
    return start(request, over: channel, deadline: deadline)
  }

  mutating func start(
    _ request: RequestHead, body: RequestBody, timeouts: Timeouts, deadline: Deadline
  ) throws(TransportError) -> UInt64 {
    let channel = try openChannel()
    let fitting: Upload?
    do throws(BodyFailure) {
      fitting = try self.upload(of: body, for: request)
    } catch {
      throw .bodyFailed(error)
    }
    guard let upload = fitting else { throw .localMisuse(.bodyLengthWrong) }
    try prepare(channel, for: request, mayBeSentAgain: request.mayBeSentAgain && body.isRepeatable)
    let total = timeouts.end(from: loop.now, within: deadline)
    self.upload = upload
    if case .none = upload {
      sender = .queue
    } else {
      sender = request.context.expectsContinue ? .awaiting100Continue : .body
    }
    expects100Continue = sender == .awaiting100Continue
    isTimed = pace.isLimited || expects100Continue || !timeouts.leavesExchangesAlone
    if isTimed { pace.start(timeouts, total: total, at: loop.now) }
    record.requestHeadBytes = request.bytes.count
    // The bytes are counted when they are sent. The count starts below zero so that the head does not count as body.
    if sender.hasUpload { record.requestBodyBytes = -request.bytes.count }
    output.append(request.bytes)
    if isObserved { copies.begin(body, self.upload, on: loop) }
    let number = start(request, over: channel, deadline: total)
    if case .produced(_, let produce) = body, case .produced(let writer) = self.upload { writer.start(produce) }
    return number
  }

  /// Whether the body has waited for `100 Continue`, and nothing of it has been sent.
  var holdsBody: Bool { expects100Continue && record.requestBodyBytes <= 0 }

  private func openChannel() throws(TransportError) -> Channel {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    guard let channel else { throw .connectionClosed }
    return channel
  }

  @inline(__always)
  private mutating func prepare(
    _ channel: Channel, for request: RequestHead, mayBeSentAgain: Bool
  ) throws(TransportError) {
    guard request.recipient == recipient else { throw .localMisuse(.recipientWrong) }
    // On a new connection an overloaded server may respond before it has read anything. That response is good, because
    // no earlier exchange exists that it could belong to. On a used connection such bytes are unsolicited.
    // Before a request that cannot be sent twice, a connection that was kept idle before its first request is checked,
    // too, and the end of the stream is looked for even if no event has reported it. That costs a system call.
    if exchangeNumber > 0 || wasKeptUnused && !mayBeSentAgain, machine.isIdle,
      channel.isReadable || !mayBeSentAgain ? true : layers.hasInput
    {
      if !mayBeSentAgain { channel.expectInput() }
      lookForEnd(of: channel)
      if !machine.isIdle { throw .connectionClosed }
    }
    guard machine.start(), parser.start(request.context) else { throw .localMisuse(.exchangeRunning) }
    exchangeNumber &+= 1
    isSuspended = false
    prepare()
  }

  private mutating func start(_ request: RequestHead, over channel: Channel, deadline: Deadline) -> UInt64 {
    channel.start(exchange: exchangeNumber, deadline: deadline)
    if isObserved { noteStart(of: request) }
    flush(to: channel)
    return exchangeNumber
  }

  /// Returns the upload for a body, or `nil` if the body does not match the request's head.
  private func upload(of body: RequestBody, for request: RequestHead) throws(BodyFailure) -> Upload? {
    switch body {
    case .none: return try upload(of: .bytes([]), for: request)
    case .bytes(let bytes):
      guard request.allows(bodyBytes: bytes.count) else { return nil }
      guard request.isChunked else { return bytes.isEmpty ? Upload.none : .bytes([bytes]) }
      let end = try? ChunkedEncoder.end()
      return .bytes(
        (bytes.isEmpty ? [] : [ChunkedEncoder.start(ofChunk: bytes.count), bytes, ChunkedEncoder.endOfChunk])
          + [end ?? []])
    case .lent(let count, let copy):
      guard count >= 0, !request.isChunked, request.allows(bodyBytes: count) else { return nil }
      return count == 0 ? Upload.none : .lent(0..<count, copy)
    case .file(let file, let offset, let length, let earlier):
      guard length >= 0, !request.isChunked, request.allows(bodyBytes: length) else { return nil }
      return .file(
        try FileUpload(file, offset: offset, length: length, unchangedSince: earlier, by: loop.kernel))
    case .produced(let length, _):
      if let length {
        guard length >= 0, request.allows(bodyBytes: length) else { return nil }
      } else if !request.isChunked {
        return nil
      }
      return .produced(BodyWriter(length: length, isChunked: request.isChunked, on: loop))
    }
  }

  // MARK: - Continuing

  /// Suspends the sending of the request, if anything of it is left.
  mutating func suspendSending(_ number: UInt64) {
    if number == exchangeNumber, sender != .done { isSuspended = true }
  }

  /// Resumes the sending.
  ///
  /// - Returns: `true` if it was suspended.
  mutating func resumeSending(_ number: UInt64) -> Bool {
    guard number == exchangeNumber, isSuspended else { return false }
    isSuspended = false
    return true
  }

  /// Whether a send could make progress. If only a producer's bytes are missing, the producer will wake the channel's
  /// subscriber.
  mutating func hasOutput() -> Bool {
    guard !isSuspended, !hasRefusedQueue else { return false }
    var hasRequest = !output.isEmpty && (!putsOffSending || machine.isSendingOnly)
    if sender == .body, let channel, upload.isReady(waking: channel) { hasRequest = true }
    if isTimed, pace.sendingPause(at: loop.now) != nil { hasRequest = false }
    if layers.isPlain { return hasRequest }
    let state = layers.sendingState
    return state.hasOutput || hasRequest && !state.waitsForInput
  }

  /// Hands the request's bytes to the kernel, as far as it takes them.
  mutating func flush(to channel: Channel) {
    guard !isSuspended else { return }
    // TLS may take bytes out of the queue without sending them.
    let secureSends = !layers.isPlain && hasKeptAll ? layers.secureSends : nil
    do throws(TLSLayer.Failure) {
      // After the request has been sent, TLS may still have messages to send.
      let sentAll = try sender.hasUpload || isTimed ? sendPieces(to: channel) : layers.send(&output, to: channel)
      if sender.hasUpload, !channel.isWritable { channel.limitUnsent() }
      guard sender != .done, sentAll || hasSentRequest else { return }
      if sentAll { sender = .done }
      requestSent()
    } catch {
      // The first error has the cause. All later ones are broken pipes.
      if lastFailure == nil { lastFailure = error }
      if isTimed { pace.progressed(at: loop.now) }
      let hasKeptAll = hasKeptAll || secureSends != nil && secureSends == layers.secureSends
      guard exchangeNumber > 1, hasKeptAll, !machine.isSendingOnly else {
        decide { $0.sendingFailed(into: &$1) }
        // The exchange of a request that has been sent continues. Requests queued behind it stay in the queue.
        if self.channel != nil, sender != .done { (sender, hasRefusedQueue) = (.done, true) }
        return
      }
      // Nothing was sent, so the connection counts as closed before this request. Bytes behind the responses to earlier
      // requests do not answer this one.
      decide { $0.connectionLost(into: &$1) }
      failure = .connectionClosed
    }
  }

  /// Whether neither the kernel nor TLS has taken any byte of the current request.
  private var hasKeptAll: Bool {
    guard case .active = machine.state else { return false }
    guard !sender.hasUpload else { return record.requestBodyBytes == -record.requestHeadBytes }
    return output.byteCount - pipeline.byteCount == record.requestHeadBytes + record.requestBodyBytes
  }

  /// Whether part of the current request has not been sent yet.
  var isSendingRequest: Bool { phase == .sending && sender != .done }

  /// Whether only later requests are left to be sent.
  var hasSentRequest: Bool { !sender.hasUpload && !pipeline.isEmpty && output.byteCount <= pipeline.byteCount }

  @inline(__always)
  mutating func requestSent() {
    if isTimed { pace.progressed(at: loop.now) }
    if phase == .sending { phase = .awaitingHead }
    record.sent = loop.now
    if isObserved { noteSent() }
    decide { $0.requestSent(into: &$1) }
  }

  private mutating func send(to channel: Channel, atMost limit: Int) throws(TLSLayer.Failure) -> Bool {
    let count = output.byteCount
    defer { sent(count - output.byteCount) }
    return try layers.send(&output, to: channel, atMost: limit)
  }

  /// Sends piece by piece.
  ///
  /// - Returns: `true` if all of the request has been sent.
  private mutating func sendPieces(to channel: Channel) throws(TLSLayer.Failure) -> Bool {
    while true {
      if !output.isEmpty ? true : !layers.isPlain {
        guard try send(to: channel, atMost: allowance(of: channel)) else { return false }
      }
      if case .none = upload { return true }
      let allowance = allowance(of: channel)
      guard sender != .awaiting100Continue, channel.isWritable, allowance > 0 else { return false }
      do throws(BodyFailure) {
        guard try takePiece(atMost: allowance, for: channel) else { return false }
      } catch {
        bodyFailed(error)
        return false
      }
    }
  }

  private func allowance(of channel: Channel) -> Int {
    isTimed ? min(channel.sendingShare, pace.sendingAllowance(at: loop.now)) : channel.sendingShare
  }

  private mutating func sent(_ count: Int) {
    if sender.hasUpload {
      record.requestBodyBytes += count
      // The bytes of the chunked coding count as sent before the content of their chunk.
      let content = record.requestBodyBytes - record.requestCodingBytes
      if isObserved, count > 0, content > 0 { note(.bodySent(bytes: content)) }
    }
    if isTimed, count > 0 { pace.sent(count, at: loop.now) }
  }

  /// Queues the next piece of the body, or sends it.
  ///
  /// - Returns: `false` if nothing more can be sent now.
  private mutating func takePiece(atMost allowance: Int, for channel: Channel) throws(BodyFailure) -> Bool {
    switch upload {
    case .none: break
    case .bytes(let pieces):
      for piece in pieces { output.append(piece) }
      upload = .none
    case .lent(let rest, let copy):
      let piece = rest.prefix(Self.pieceBytesMax)
      output.append(copy(piece))
      upload = piece == rest ? .none : .lent(piece.upperBound..<rest.upperBound, copy)
    case .file(let file):
      guard file.remaining > 0 else {
        upload = .none
        break
      }
      guard file.isSendable, layers.isPlain else {
        try read(file)
        break
      }
      try file.check(by: loop.kernel)
      let count: Int?
      do throws(Errno) {
        count = try channel.sendFile(file.file, at: file.offset, count: min(allowance, file.remaining))
      } catch {
        // The kernel's error does not distinguish the file from the socket. Reading and sending separately does.
        file.isSendable = false
        break
      }
      guard let count else { return false }
      guard count > 0 else { throw .fileChanged }
      file.advance(by: count)
      sent(count)
    case .produced(let writer):
      switch try writer.fetch(into: &output) {
      case .bytes(let coding):
        record.requestCodingBytes += coding
        if isTimed { pace.progressed(at: loop.now) }
      case .end(let coding):
        record.requestCodingBytes += coding
        upload = .none
      case .nothing: return false
      }
    }
    return true
  }

  private mutating func read(_ file: FileUpload) throws(BodyFailure) {
    var chunk = loop.takeChunk(atLeast: Self.pieceBytesMax)
    var result: Result<Int, Errno>
    do throws(Errno) {
      result = .success(try file.file.read(at: file.offset, into: &chunk, by: loop.kernel))
    } catch {
      result = .failure(error)
    }
    var piece: [UInt8] = []
    chunk.lend(0..<min(chunk.count, file.remaining)) { piece.append(copying: $0) }
    loop.recycle(chunk)
    switch result {
    case .success(0): throw .fileChanged
    case .success:
      try file.check(by: loop.kernel)
      file.advance(by: piece.count)
      output.append(piece)
    case .failure(let error): throw .fileUnreadable(error)
    }
  }

  // MARK: - Ending

  /// Fails the exchange because of its request's or its response's body.
  mutating func bodyFailed(_ failure: BodyFailure) {
    bodyFailure = failure
    decide { $0.bodyFailed(into: &$1) }
  }

  /// Drops what is left of the requests, and stops the producer of a body.
  mutating func stopSending() {
    if case .produced(let writer) = upload { writer.stop() }
    upload = .none
    sender = .done
    output.removeAll()
  }
}
