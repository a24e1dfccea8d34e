import Synchronization

/// A job that a crew runs on its loop.
public protocol CrewWork: AnyObject, Sendable {
  func run() async
}

/// A pool of reusable tasks on a loop. Any thread may submit work.
///
/// Performance: waking a parked task costs less than creating a task, or than moving the caller's own task to the loop
/// and back.
public final class Crew: Sendable {
  private let loop: ClientLoop

  /// A task of the pool. Its fields belong to the task while it works, and to the thread that has removed it from
  /// `resting` otherwise.
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

  /// Maximum number of idle tasks.
  private static let restingMax = 64

  public init(on loop: ClientLoop) { self.loop = loop }

  /// Runs the work in an idle task, or in a new one if none is idle.
  public func run(_ work: any CrewWork) {
    if let member = state.withLock({ $0.resting.popLast() }) {
      member.work = work
      member.waiter.take()?.wake()
    } else {
      let member = Member(work)
      // Detached: the task outlives its creator and inherits nothing from it.
      Task.detached(executorPreference: loop) { await self.serve(member) }
    }
  }

  private func serve(_ member: Member) async {
    var work = member.work.take()
    while work != nil {
      await work?.run()
      // An idle task keeps no reference to its last work.
      work = nil
      await Waiter.suspend { waiter in
        member.waiter = waiter
        if !rest(member) { member.waiter.take()?.wake() }
      }
      work = member.work.take()
    }
  }

  /// Adds a task to the idle ones.
  ///
  /// - Returns: `false` if the task has to end.
  private func rest(_ member: Member) -> Bool {
    state.withLock { state in
      guard !state.isDismissed, state.resting.count < Self.restingMax else { return false }
      state.resting.append(member)
      return true
    }
  }

  /// Ends the idle tasks, and each other task when its work is done. Work that is submitted later still runs.
  public func dismiss() {
    let resting = state.withLock { state in
      state.isDismissed = true
      defer { state.resting = [] }
      return state.resting
    }
    for member in resting { member.waiter.take()?.wake() }
  }
}
