import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// The request on its way out.
extension ConnectionCore {
  /// Whether sending may come to something.
  mutating func hasOutput() -> Bool {
    let hasRequest = !output.isEmpty
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
      guard try send(to: channel), isSending else { return }
      isSending = false
      if phase == .sending { phase = .awaitingHead }
      note(.requestSent)
      decide { $0.requestSent(into: &$1) }
    } catch {
      lastFailure = error
      decide { $0.sendingFailed(into: &$1) }
    }
  }
}
