import LarkspurBytes
import LarkspurHTTP

/// Requests behind others that are not answered yet.
extension ConnectionCore {
  /// Whether a new request would be the only one on the connection.
  var isIdle: Bool { machine.isIdle && pipeline.isEmpty && !pipeline.isBusy }

  /// Whether requests wait for their turn, or to be sent.
  var hasFollowers: Bool { !pipeline.isEmpty || unsentCount > 0 }

  mutating func occupy() { pipeline.isBusy = true }
  mutating func vacate(_ number: UInt64) { if number == exchangeNumber { pipeline.isBusy = false } }

  /// Queues a request behind those that are not answered yet. `flush` sends it, and `advance` starts its exchange.
  mutating func enqueue(
    _ request: RequestHead, body: [UInt8], deadline: Deadline
  ) throws(TransportError) -> UInt64 {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    guard channel != nil, !machine.hasStoppedSending, !hasRefusedQueue else { throw .connectionClosed }
    guard request.allows(bodyBytes: body.count) else { throw .localMisuse(.bodyLengthWrong) }
    guard request.recipient == recipient else { throw .localMisuse(.recipientWrong) }
    let number = exchangeNumber &+ 1 &+ UInt64(pipeline.count)
    pipeline.append(
      Pipeline.Follower(
        number: number, context: request.context, deadline: deadline, headBytes: request.bytes.count,
        bodyBytes: body.count))
    output.append(request.bytes)
    if !body.isEmpty { output.append(body) }
    if sender == .done { sender = .queue }
    unsentCount += 1
    return number
  }

  /// Whether requests should be sent now. While `requestsOnTheirWay` requests or more are unanswered, new ones wait and
  /// then leave together, so that one send serves several of them. Their responses come after the earlier ones in any
  /// case.
  var shouldFlush: Bool {
    unsentCount > 0 && pipeline.count - unsentCount + (machine.isIdle ? 0 : 1) < Self.requestsOnTheirWay
  }

  /// Sends the queued bytes.
  ///
  /// - Returns: `false` if something is left.
  mutating func flush() -> Bool {
    unsentCount = 0
    if sender != .done, let channel { flush(to: channel) }
    return output.isEmpty
  }

  /// Whether the connection is open and the exchange has not begun yet.
  func isBehind(_ number: UInt64) -> Bool { channel != nil && number > exchangeNumber }

  mutating func keep(_ continuation: TaskContinuation, of number: UInt64) { pipeline.keep(continuation, of: number) }

  /// Marks a queued request as unwanted. When its turn comes, the connection is closed, because the response cannot be
  /// skipped.
  ///
  /// - Returns: The task that waits for its turn, which the caller has to resume, or `nil`.
  mutating func abandon(_ number: UInt64) -> TaskContinuation? { pipeline.abandon(number) }

  /// Starts the next queued exchange if the connection is free for it. If the connection is closed, removes the queued
  /// requests.
  ///
  /// - Returns: A waiting task to resume, or `nil` if there is none. Call this until it returns `nil`.
  mutating func advance() -> TaskContinuation? {
    if channel != nil, pipeline.isBusy { return nil }
    if hasRefusedQueue, machine.isIdle, output.byteCount > pipeline.byteCountBehindFirst { release() }
    // If no byte of the next request has been sent, bytes that have arrived already cannot answer it.
    if let channel, machine.isIdle, !pipeline.isEmpty, output.byteCount >= pipeline.byteCount {
      if input.count > 0 {
        decide { $0.unsolicitedBytes(into: &$1) }
      } else if channel.isReadable ? true : layers.hasInput {
        lookForEnd(of: channel)
      }
    }
    while let channel, machine.isIdle, let follower = pipeline.takeFirst() {
      guard !follower.isAbandoned, machine.start(), parser.start(follower.context) else {
        release()
        continue
      }
      exchangeNumber = follower.number
      isSuspended = false
      occupy()
      prepare()
      record.requestHeadBytes = follower.headBytes
      record.requestBodyBytes = follower.bodyBytes
      channel.start(exchange: exchangeNumber, deadline: follower.deadline)
      expects100Continue = false
      isTimed = pace.isLimited
      if isTimed { pace.start(Timeouts(), total: follower.deadline, at: loop.now) }
      if output.byteCount <= pipeline.byteCount { requestSent() }
      return follower.continuation
    }
    while channel == nil, let follower = pipeline.takeFirst() {
      if let continuation = follower.continuation { return continuation }
    }
    return nil
  }
}
