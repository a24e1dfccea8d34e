import LarkspurBytes
import LarkspurTransport

/// The two times of a load: since its last byte, and in all. Both stand still while the task is suspended, and while a
/// question to its owner is open. While the load waits for a network, or in a queue for a connection, only the second
/// one counts.
///
/// A byte that comes costs one stored time and no timer: `LoadClocks` compares the times when one may be up.
struct LoadClock {
  /// In nanoseconds.
  private var idleMax: UInt64
  private let totalMax: UInt64
  private(set) var lastProgress = Deadline.never
  private var end = Deadline.never
  private var pausedAt: Deadline?
  private var pauseCount = 0
  /// Whether bytes are expected at all.
  private var countsIdleTime = true
  private var isStarted = false
  /// The index of the load among `LoadClocks.running`, if it is one of these.
  fileprivate var index: Int?

  /// - Parameters:
  ///   - idle: The longest time without a byte, in nanoseconds.
  ///   - total: How long the load may take, in nanoseconds.
  init(idle: UInt64, total: UInt64) {
    idleMax = idle
    totalMax = total
  }

  /// A time in nanoseconds, or the largest number if there is no limit. Performance: numbers are cheaper to add.
  static func nanoseconds(_ time: Duration?) -> UInt64 { time?.wholeNanoseconds ?? .max }

  fileprivate var isRunning: Bool { isStarted && pausedAt == nil }

  /// The end of the idle time that begins now.
  fileprivate func idleEnd(from now: Deadline) -> Deadline { now.advanced(byNanoseconds: idleMax) }

  /// When the first of the two times is up.
  fileprivate var due: Deadline {
    let idle = idleEnd(from: lastProgress)
    // Performance: `min` is generic, and looks up the conformance.
    return countsIdleTime && idle < end ? idle : end
  }

  fileprivate mutating func start(at now: Deadline) {
    isStarted = true
    lastProgress = now
    end = now.advanced(byNanoseconds: totalMax)
  }

  fileprivate mutating func stop() { isStarted = false }

  fileprivate mutating func progress(at now: Deadline) { lastProgress = now }

  /// Takes a wait until `moment` into account, in which no byte was expected.
  fileprivate mutating func waited(until moment: Deadline) {
    if moment > lastProgress { lastProgress = moment }
  }

  fileprivate mutating func pause(at now: Deadline) {
    pauseCount += 1
    if pauseCount == 1 { pausedAt = now }
  }

  fileprivate mutating func resume(at now: Deadline) {
    pauseCount -= 1
    guard pauseCount == 0, let since = pausedAt else { return }
    pausedAt = nil
    lastProgress = now
    if end != .never { end = end.advanced(by: now.duration(since: since)) }
  }

  fileprivate mutating func setIdleTime(_ idle: UInt64, at now: Deadline) {
    idleMax = idle
    lastProgress = now
  }

  fileprivate mutating func setCountsIdleTime(_ counts: Bool, at now: Deadline) {
    countsIdleTime = counts
    if counts { lastProgress = now }
  }
}

/// A load with a clock. It belongs to the thread of its loop.
protocol TimedLoad: AnyObject {
  var clock: LoadClock { get set }
  var clocks: LoadClocks { get }
  /// The latest moment at which the load waited in a queue for a connection that others use.
  var queuedUntil: Deadline { get }

  /// One of the two times is up.
  func timeIsUp()
}

extension TimedLoad {
  private var now: Deadline { clocks.loop.now }

  /// Starts the clock, which keeps the load while it runs and a time can be up.
  func startClock() {
    clock.start(at: now)
    clocks.update(self)
  }

  func stopClock() {
    clock.stop()
    clocks.update(self)
  }

  func progressed() { clock.progress(at: now) }

  func pauseClock() {
    clock.pause(at: now)
    clocks.update(self)
  }

  func resumeClock() {
    clock.resume(at: now)
    clocks.update(self)
  }

  /// Stops the idle time, because no byte is waited for: there is no network, or a live connection may be idle.
  func stopIdleTime() {
    clock.setCountsIdleTime(false, at: now)
    clocks.update(self)
  }

  func countIdleTime() {
    clock.setCountsIdleTime(true, at: now)
    clocks.update(self)
  }

  /// Changes the longest time without a byte, in nanoseconds, from now on.
  func setIdleTime(_ idle: UInt64) {
    clock.setIdleTime(idle, at: now)
    clocks.update(self)
  }

  /// Calls `action` when the longest time without a byte has passed.
  func startIdleTimer(_ action: @escaping () -> Void) -> ClientLoop.Timer {
    clocks.loop.startTimer(clock.idleEnd(from: now), action)
  }
}

/// The clocks of a session's loads: one timer for all of them. The timer is set for the first load whose time may be
/// up, and compares all when it fires, so that a load that ends in time costs no timer. It belongs to its loop's
/// thread.
final class LoadClocks {
  private struct State {
    var running: [any TimedLoad] = []
    var timer: ClientLoop.Timer?
    /// When the timer fires.
    var fires = Deadline.never
  }

  fileprivate let loop: ClientLoop
  private let loopBound = LoopBound(State())

  init(on loop: ClientLoop) { self.loop = loop }

  /// Adds or removes a load whose clock has changed, and sets the timer if the load's time may be the first to be up.
  @inline(__always)
  fileprivate func update(_ load: some TimedLoad) {
    let clock = load.clock
    guard clock.isRunning, clock.due < .never else { return remove(load) }
    if clock.index == nil {
      load.clock.index = loopBound.state.running.count
      loopBound.state.running.append(load)
    }
    if clock.due < loopBound.state.fires { setTimer(clock.due) }
  }

  /// Removes a load. The last one takes its index. The timer stays: another load will need it.
  private func remove(_ load: any TimedLoad) {
    guard let index = load.clock.index else { return }
    load.clock.index = nil
    let last = loopBound.state.running.removeLast()
    guard last !== load else { return }
    loopBound.state.running[index] = last
    last.clock.index = index
  }

  private func setTimer(_ due: Deadline) {
    stopTimer()
    loopBound.state.fires = due
    loopBound.state.timer = loop.startTimer(due) { [self] in fired() }
  }

  /// Stops the timer, which keeps its owner, until another clock is started.
  func stopTimer() {
    guard let timer = loopBound.state.timer.take() else { return }
    loopBound.state.fires = .never
    loop.stopTimer(timer)
  }

  private func fired() {
    stopTimer()
    var next = Deadline.never
    // A load whose time is up may stop the others. Performance: loads come into queues and leave them more often than
    // this is called, so that waits are looked up here.
    for load in loopBound.state.running where load.clock.index != nil {
      load.clock.waited(until: load.queuedUntil)
      let due = load.clock.due
      if due <= loop.now {
        remove(load)
        load.timeIsUp()
      } else {
        next = min(next, due)
      }
    }
    if next < loopBound.state.fires { setTimer(next) }
  }
}
