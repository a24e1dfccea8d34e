import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// From the queue to the channel.
extension ConnectionCore {
  /// Whether sending may come to something.
  mutating func hasOutput() -> Bool {
    let hasRequest = !output.isEmpty && !putsOffSending
    guard isSecured, let state = tls?.sendingState else { return hasRequest }
    return state.hasOutput || hasRequest && !state.waitsForInput
  }

  mutating func send(to channel: Channel) throws(TLSLayer.Failure) -> Bool {
    if isSecured {
      guard let sentAll = try tls?.send(&output, to: channel) else { throw .kernel(.notConnected) }
      return sentAll
    }
    do throws(Errno) {
      return try channel.send(&output)
    } catch {
      throw .kernel(error)
    }
  }

  /// Hands the kernel what is queued of the request.
  mutating func flush(to channel: Channel) {
    do throws(TLSLayer.Failure) {
      // Of TLS alone something may be left to send, when the request has left.
      let sentAll = try send(to: channel)
      guard isSending, sentAll || hasSentRequest else { return }
      isSending = !sentAll
      requestSent()
    } catch {
      // The first one says why: all that follow are broken pipes.
      if lastFailure == nil { lastFailure = error }
      decide { $0.sendingFailed(into: &$1) }
    }
  }

  /// Whether nothing but later requests is left to be sent.
  var hasSentRequest: Bool { output.byteCount <= pipeline.byteCount }

  mutating func requestSent() {
    if phase == .sending { phase = .awaitingHead }
    record.sent = loop.now
    note(.requestSent)
    decide { $0.requestSent(into: &$1) }
  }
}
