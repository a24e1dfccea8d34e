import LarkspurBytes
import LarkspurHTTP

/// Requests behind those that are not answered yet.
extension ConnectionCore {
  /// Whether a request would be the only one.
  var isIdle: Bool { machine.isIdle && pipeline.isEmpty && !pipeline.isBusy }

  /// Whether anybody waits for his turn, or for his request to leave.
  var hasFollowers: Bool { !pipeline.isEmpty || unsentCount > 0 }

  mutating func hold() { pipeline.isBusy = true }
  mutating func letGo(_ number: UInt64) { if number == exchangeNumber { pipeline.isBusy = false } }

  /// Queues a request behind those that are not answered yet. It leaves by `flush`, and is begun by `advance`.
  mutating func enqueue(
    _ request: RequestHead, body: [UInt8], deadline: Deadline
  ) throws(TransportError) -> UInt64 {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    guard channel != nil else { throw .connectionClosed }
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

  /// Whether requests should leave now. Those that come while many are on their way leave together, half a pipeline at a time,
  /// so that a send serves several of them. Their answers come behind the others in any case.
  var shouldFlush: Bool {
    unsentCount > 0 && pipeline.count - unsentCount + (machine.isIdle ? 0 : 1) < Self.requestsOnTheirWay
  }

  /// Sends what has been queued. False: something is left.
  mutating func flush() -> Bool {
    unsentCount = 0
    if sender != .done, let channel { flush(to: channel) }
    return output.isEmpty
  }

  /// Whether the exchange has begun, or never will.
  func isBehind(_ number: UInt64) -> Bool { channel != nil && number > exchangeNumber }

  mutating func keep(_ waiter: Waiter, of number: UInt64) { pipeline.keep(waiter, of: number) }

  /// The request is not wanted any more. Its answer will come all the same: then the connection ends.
  mutating func abandon(_ number: UInt64) -> Waiter? { pipeline.abandon(number) }

  /// Who waits for an exchange that has just begun, or will never be begun. To be called until there is nobody.
  mutating func advance() -> Waiter? {
    if channel != nil, pipeline.isBusy { return nil }
    // Nothing of the next one has left yet: what is there already does not answer it.
    if let channel, machine.isIdle, !pipeline.isEmpty, output.byteCount >= pipeline.byteCount {
      if input.count > 0 {
        decide { $0.unsolicitedBytes(into: &$1) }
      } else if channel.isReadable ? true : layers.hasInput {
        lookForEnd(of: channel)
      }
    }
    while let channel, machine.isIdle, let follower = pipeline.takeFirst() {
      guard !follower.isAbandoned, machine.begin(), parser.begin(follower.context) else {
        release()
        continue
      }
      exchangeNumber = follower.number
      isSuspended = false
      hold()
      prepare()
      record.requestHeadBytes = follower.headBytes
      record.requestBodyBytes = follower.bodyBytes
      channel.begin(exchange: exchangeNumber, deadline: follower.deadline)
      expects100Continue = false
      isTimed = pace.isLimited
      if isTimed { pace.begin(Timeouts(), total: follower.deadline, at: loop.now) }
      if output.byteCount <= pipeline.byteCount { requestSent() }
      return follower.waiter
    }
    while channel == nil, let follower = pipeline.takeFirst() {
      if let waiter = follower.waiter { return waiter }
    }
    return nil
  }
}
