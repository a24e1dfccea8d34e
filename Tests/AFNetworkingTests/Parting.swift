/// Does something as it goes.
final class Parting: @unchecked Sendable {
  private let last: () -> Void

  init(_ last: @escaping () -> Void) { self.last = last }

  deinit { last() }
}
