@testable import LarkspurTransport

/// Work that is a closure.
final class GuestWork: LoopWork {
  private let body: @Sendable () -> Void
  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  func perform() { body() }
}

/// A successor that is a closure.
final class Successor: TurnSuccessor, Sendable {
  private let call: @Sendable () -> Void
  init(_ call: @escaping @Sendable () -> Void) { self.call = call }
  func turnIsOver() { call() }
}
