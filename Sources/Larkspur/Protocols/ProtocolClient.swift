import Foundation
import Synchronization

/// What a protocol has told of one load, on its way to the task's performer.
///
/// The protocol pushes, from any thread; the performer takes, on its loop. The queue has no bound: what is in it the
/// program itself has made. After the end, or when it is closed, it takes nothing more.
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
    /// Those before it have been taken.
    var first = 0
    var reader: CheckedContinuation<Void, Never>?
    /// The protocol has said how its load ends.
    var hasEnded = false
    var isClosed = false
    var hasStarted = false
    /// The challenge that somebody is asked about, and how to stop asking.
    var open: (challenge: URLAuthenticationChallenge, withdraw: @Sendable () -> Void)?
    var withdrawn: [URLAuthenticationChallenge] = []
  }

  /// What the protocol is to load. Settled before it starts.
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

  /// Said by who has called it.
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
      // Who has ended waits for no credentials.
      return (state.reader.take(), state.hasEnded ? state.open.take()?.withdraw : nil)
    }
    withdraw?()
    reader?.resume()
  }

  // MARK: - The performer's side

  /// `startLoading()` has returned.
  var hasStarted: Bool { state.withLock { $0.hasStarted } }

  func take() -> Event? {
    state.withLock { state in
      guard state.first < state.events.count else { return nil }
      defer {
        // Data that has been taken is not kept.
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

  /// Returns when there is an event, or when the wait is given up.
  func wait() async {
    await withCheckedContinuation { continuation in
      let goesOn = state.withLock { state -> Bool in
        if state.first < state.events.count || state.isClosed { return true }
        state.reader = continuation
        return false
      }
      if goesOn { continuation.resume() }
    }
  }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  func giveUpWait() { state.withLock { $0.reader.take() }?.resume() }

  /// What is said from now on has no effect.
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

  /// False: the answer is not wanted any more.
  func open(_ challenge: URLAuthenticationChallenge, withdrawingBy withdraw: @escaping @Sendable () -> Void) -> Bool {
    state.withLock { state in
      guard !state.isClosed, !state.hasEnded, !state.withdrawn.contains(where: { $0 === challenge }) else {
        return false
      }
      state.open = (challenge, withdraw)
      return true
    }
  }

  /// False: the answer is not wanted any more.
  func settle(_ challenge: URLAuthenticationChallenge) -> Bool {
    state.withLock { state in
      guard let open = state.open, open.challenge === challenge else { return false }
      state.open = nil
      return true
    }
  }
}
