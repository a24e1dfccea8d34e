import Foundation
import Synchronization

/// The events of one load by a protocol, on their way to the task's load.
///
/// The protocol pushes events from any thread; the load takes them on its loop. The queue is not bounded, because the
/// program itself makes its content. The queue accepts nothing after the end of the load, or after it has been closed.
final class ProtocolClient: NSObject, URLProtocolClient, @unchecked Sendable {
  enum Event {
    case redirected(URLRequest, URLResponse)
    case cachedResponseIsValid(CachedURLResponse)
    case response(URLResponse, URLCache.StoragePolicy)
    case data(Data)
    case challenge(URLAuthenticationChallenge)
    case finished
    case failed(any Error)
    /// `startLoading()` has returned.
    case startReturned
  }

  private struct State {
    var events: [Event?] = []
    /// The index of the first event that has not been taken.
    var first = 0
    var reader: CheckedContinuation<Void, Never>?
    /// Whether the protocol has reported the end of its load.
    var hasEnded = false
    var isClosed = false
    var hasStarted = false
    /// The challenge that the delegate is asked about, and a function that ends the wait for the answer.
    var open: (challenge: URLAuthenticationChallenge, withdraw: @Sendable () -> Void)?
    var withdrawn: [URLAuthenticationChallenge] = []
  }

  /// The request that the protocol loads. Does not change after the start.
  var request: URLRequest
  private let state = Mutex(State())

  init(_ request: URLRequest) {
    self.request = request
    super.init()
  }

  // MARK: - The protocol's side

  func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse) {
    push(.redirected(request, redirectResponse))
  }

  func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {
    push(.cachedResponseIsValid(cachedResponse))
  }

  func urlProtocol(
    _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
  ) { push(.response(response, policy)) }

  func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) { push(.data(data)) }

  func urlProtocolDidFinishLoading(_ protocol: URLProtocol) { push(.finished) }

  func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) { push(.failed(error)) }

  func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
    push(.challenge(challenge))
  }

  func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {
    let withdraw = state.withLock { state -> (@Sendable () -> Void)? in
      guard !state.isClosed else { return nil }
      state.withdrawn.append(challenge)
      guard state.open?.challenge === challenge else { return nil }
      return state.open.take()?.withdraw
    }
    withdraw?()
  }

  /// Reports that `startLoading()` has returned.
  func startReturned() {
    state.withLock { $0.hasStarted = true }
    push(.startReturned)
  }

  private func push(_ event: Event) {
    let (reader, withdraw) = state.withLock {
      state -> (CheckedContinuation<Void, Never>?, (@Sendable () -> Void)?) in
      guard !state.isClosed, !state.hasEnded else { return (nil, nil) }
      switch event {
      case .finished, .failed: state.hasEnded = true
      default: break
      }
      state.events.append(event)
      // A protocol that has ended its load does not need the answer to a challenge.
      return (state.reader.take(), state.hasEnded ? state.open.take()?.withdraw : nil)
    }
    withdraw?()
    reader?.resume()
  }

  // MARK: - The load's side

  /// Whether `startLoading()` has returned.
  var hasStarted: Bool { state.withLock { $0.hasStarted } }

  func take() -> Event? {
    state.withLock { state in
      guard state.first < state.events.count else { return nil }
      defer {
        // Do not keep data that has been taken.
        state.events[state.first] = nil
        state.first += 1
        if state.first == state.events.count {
          state.events.removeAll(keepingCapacity: true)
          state.first = 0
        }
      }
      return state.events[state.first]
    }
  }

  /// Suspends until there is an event, `cancelWait()` is called, or the queue is closed.
  func wait() async {
    await withCheckedContinuation { continuation in
      let resumesNow = state.withLock { state -> Bool in
        if state.first < state.events.count || state.isClosed { return true }
        state.reader = continuation
        return false
      }
      if resumesNow { continuation.resume() }
    }
  }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  func cancelWait() { state.withLock { $0.reader.take() }?.resume() }

  /// Closes the queue. Later events have no effect.
  func close() {
    let reader = state.withLock { state -> CheckedContinuation<Void, Never>? in
      state.isClosed = true
      state.events = []
      state.first = 0
      state.open = nil
      state.withdrawn = []
      return state.reader.take()
    }
    reader?.resume()
  }

  func isWithdrawn(_ challenge: URLAuthenticationChallenge) -> Bool {
    state.withLock { state in state.hasEnded || state.withdrawn.contains { $0 === challenge } }
  }

  /// Sets the challenge whose answer is awaited.
  ///
  /// - Returns: `false` if the answer is no longer wanted.
  func open(_ challenge: URLAuthenticationChallenge, withdrawingBy withdraw: @escaping @Sendable () -> Void) -> Bool {
    state.withLock { state in
      guard !state.isClosed, !state.hasEnded, !state.withdrawn.contains(where: { $0 === challenge }) else {
        return false
      }
      state.open = (challenge, withdraw)
      return true
    }
  }

  /// Ends the wait for the answer to a challenge.
  ///
  /// - Returns: `false` if the answer is no longer wanted.
  func settle(_ challenge: URLAuthenticationChallenge) -> Bool {
    state.withLock { state in
      guard let open = state.open, open.challenge === challenge else { return false }
      state.open = nil
      return true
    }
  }
}
