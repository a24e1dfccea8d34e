import Synchronization

/// What a crew does, on its loop.
public protocol CrewWork: AnyObject, Sendable {
  func run() async
}

/// Tasks on a loop that stay when their work is done, for the work to come: to make a task, and to have one's own go to the
/// loop and come back, costs more than to wake one that is there.
///
/// Any thread may give it work.
public final class Crew: Sendable {
  private let loop: ClientLoop

  /// A task of the crew's. Its fields belong to the task while it works, and to the thread that has taken it from the list of
  /// resting members.
  private final class Member: @unchecked Sendable {
    var work: (any CrewWork)?
    var waiter: Waiter?

    init(_ work: any CrewWork) { self.work = work }
  }

  private struct State {
    var resting: [Member] = []
    var isDismissed = false
  }

  private let state = Mutex(State())

  /// So many rest at most, as many as may be wanted in a burst.
  private static let restingMax = 64

  public init(on loop: ClientLoop) { self.loop = loop }

  /// Has the work done, by one of its tasks or by a new one.
  public func run(_ work: any CrewWork) {
    if let member = state.withLock({ $0.resting.popLast() }) {
      member.work = work
      member.waiter.take()?.wake()
    } else {
      let member = Member(work)
      // Detached: it outlives what it was made in, and has no part in it.
      Task.detached(executorPreference: loop) { await self.serve(member) }
    }
  }

  private func serve(_ member: Member) async {
    var work = member.work.take()
    while work != nil {
      await work?.run()
      // A resting member refers to no work.
      work = nil
      await Waiter.suspend { waiter in
        member.waiter = waiter
        if !rest(member) { member.waiter.take()?.wake() }
      }
      work = member.work.take()
    }
  }

  /// Adds a member to those that rest.
  ///
  /// - Returns: `false` if the member is to end.
  private func rest(_ member: Member) -> Bool {
    state.withLock { state in
      guard !state.isDismissed, state.resting.count < Self.restingMax else { return false }
      state.resting.append(member)
      return true
    }
  }

  /// Ends those that rest, and the others when their work is done. What comes from now on is done all the same.
  public func dismiss() {
    let resting = state.withLock { state in
      state.isDismissed = true
      defer { state.resting = [] }
      return state.resting
    }
    for member in resting { member.waiter.take()?.wake() }
  }
}
