/// An object that runs a closure when it is deallocated.
final class DeinitObserver: @unchecked Sendable {
  private let last: () -> Void

  init(_ last: @escaping () -> Void) { self.last = last }

  deinit { last() }
}
