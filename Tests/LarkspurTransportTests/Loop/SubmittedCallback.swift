import LarkspurTransport

/// A callback that calls a closure.
final class SubmittedCallback: LoopCallback {
  private let body: @Sendable () -> Void
  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  func perform() { body() }
}

/// A completion that calls a closure.
final class Completion: LoopCompletion, Sendable {
  private let call: @Sendable () -> Void
  init(_ call: @escaping @Sendable () -> Void) { self.call = call }
  func complete() { call() }
}
