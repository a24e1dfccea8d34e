import Foundation
import LarkspurBytes
import LarkspurIO

/// The bytes between an output stream and the input stream that is bound to it. For any thread.
///
///     output.write --> [ at most `capacity` bytes ] --> input.read
///
/// A write blocks while the buffer is full, a read blocks while the buffer is empty. Closing either side ends both
/// waits.
/// `condition` guards every property that changes. Delegates are called without it.
final class BoundBuffer: @unchecked Sendable {
  enum Side { case input, output }

  /// The state of one of the two streams.
  struct StreamState {
    /// `.notOpen`, `.open` or `.closed`. `status(of:)` adds the effects of the other side's state.
    var status = Stream.Status.notOpen
    /// The error with which this side was closed, or `nil` if it was closed in order. The other side's stream has it.
    var failure: (any Error)?
    weak var stream: Stream?
    weak var delegate: (any StreamDelegate)?
    var sources: [RunLoopSource] = []
    /// The events that the delegate has been called for. A read or a write removes its own event, so that the event can
    /// be delivered again.
    var reported: Stream.Event = []
  }

  private let condition = NSCondition()
  private let capacity: Int
  private var bytes: [UInt8] = []
  /// The index of the first byte that has not been read.
  private var start = 0
  private var input = StreamState()
  private var output = StreamState()
  /// Called after each change, without the lock.
  private var observer: (@Sendable () -> Void)?

  /// - Parameter capacity: In bytes; at least one.
  init(capacity: Int) { self.capacity = max(capacity, 1) }

  private var count: Int { bytes.count - start }

  private subscript(side: Side) -> StreamState {
    get { side == .input ? input : output }
    _modify {
      switch side {
      case .input: yield &input
      case .output: yield &output
      }
    }
  }

  // MARK: - Bytes

  /// Reads like `InputStream.read`: blocks until there is at least one byte.
  ///
  /// - Returns: The number of bytes that `take` was given, at most `wanted`; 0 at the end; -1 if the input stream is
  ///   not open or is closed meanwhile, or if the output side was closed with an error and all bytes have been read.
  func read(atMost wanted: Int, _ take: (ArraySlice<UInt8>) -> Void) -> Int {
    change {
      while wanted > 0, input.status == .open, count == 0, output.status != .closed { condition.wait() }
      guard input.status == .open, currentStatus(of: .input) != .error else { return -1 }
      let taken = min(count, max(wanted, 0))
      take(bytes[start..<start + taken])
      start += taken
      // Performance: moving the rest to the front only when it is the smaller half keeps the cost proportional to the
      // bytes read.
      if start * 2 >= bytes.count {
        bytes.removeSubrange(..<start)
        start = 0
      }
      input.reported.remove(.hasBytesAvailable)
      return taken
    }
  }

  /// Writes like `OutputStream.write`: blocks until there is room for one byte, and takes as many bytes as there is
  /// room for.
  ///
  /// - Returns: The number of bytes of `given` that were taken; -1 if the output stream is not open, or if one of the
  ///   sides is closed.
  func write(_ given: UnsafeBufferPointer<UInt8>) -> Int {
    change {
      while !given.isEmpty, output.status == .open, input.status != .closed, count >= capacity {
        condition.wait()
      }
      guard output.status == .open, input.status != .closed else { return -1 }
      let taken = min(given.count, capacity - count)
      // Safe: the caller lends `given` for the call, and `taken` is no more than its count.
      unsafe bytes.append(contentsOf: given[..<taken])
      output.reported.remove(.hasSpaceAvailable)
      return taken
    }
  }

  /// Writes as many bytes as there is room for, without blocking.
  ///
  /// - Returns: The number of bytes that were taken.
  func writeNow(_ given: Span<UInt8>) -> Int {
    change {
      guard output.status == .open, input.status != .closed else { return given.count }
      let taken = min(given.count, capacity - count)
      bytes.append(copying: given.extracting(first: taken))
      return taken
    }
  }

  // MARK: - States

  /// Sets a function that is called after each change, on the thread of the change.
  func setObserver(_ observer: @escaping @Sendable () -> Void) { look { self.observer = observer } }

  func open(_ side: Side) {
    change { if self[side].status == .notOpen { self[side].status = .open } }
  }

  /// Closes one side, and removes its stream from its run loops.
  ///
  /// - Parameter failure: The error of the other side's stream, or `nil` for an orderly end. The first close counts.
  func close(_ side: Side, failure: (any Error)? = nil) {
    let sources = change {
      if self[side].status != .closed { self[side].failure = failure }
      self[side].status = .closed
      if side == .input { (bytes, start) = ([], 0) }
      defer { self[side].sources = [] }
      return self[side].sources
    }
    for source in sources { source.invalidate() }
  }

  func status(of side: Side) -> Stream.Status { look { currentStatus(of: side) } }

  /// The error of a stream whose status is `.error`: that of the other side's close, or else a broken pipe.
  func error(of side: Side) -> (any Error)? {
    look {
      guard currentStatus(of: side) == .error else { return nil }
      return self[side == .input ? .output : .input].failure
        ?? NSError(domain: NSPOSIXErrorDomain, code: Int(Errno.brokenPipe.rawValue))
    }
  }

  /// The status of one side, including the effects of the other side. An input stream whose peer is closed is at its
  /// end as soon as all bytes have been read, or has failed if the peer was closed with an error. An output stream whose
  /// peer is closed has failed, because no byte can reach a reader any more.
  private func currentStatus(of side: Side) -> Stream.Status {
    guard self[side].status == .open else { return self[side].status }
    return switch side {
    case .input: output.status != .closed || count > 0 ? .open : output.failure == nil ? .atEnd : .error
    case .output: input.status == .closed ? .error : .open
    }
  }

  /// Whether a read or a write would return without blocking.
  func isReady(_ side: Side) -> Bool {
    look {
      currentStatus(of: side) == .open && (side == .input ? count > 0 : count < capacity)
    }
  }

  // MARK: - Delegates

  func delegate(of side: Side) -> (any StreamDelegate)? { look { self[side].delegate } }

  func setDelegate(_ delegate: (any StreamDelegate)?, of side: Side) { change { self[side].delegate = delegate } }

  /// Sets the stream that the delegate is called with.
  func setStream(_ stream: Stream, of side: Side) { change { self[side].stream = stream } }

  func schedule(_ side: Side, in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
    let source = RunLoopSource(runLoop, mode) { [weak self] in self?.report(side) }
    let isClosed = change {
      let isClosed = self[side].status == .closed
      if !isClosed { self[side].sources.append(source) }
      return isClosed
    }
    if isClosed { source.invalidate() }
  }

  func unschedule(_ side: Side, from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
    let removed = change {
      let removed = self[side].sources.filter { $0.isOf(runLoop, mode) }
      self[side].sources.removeAll { $0.isOf(runLoop, mode) }
      return removed
    }
    for source in removed { source.invalidate() }
  }

  /// Calls the delegate of one side with one event, on the run loop's thread.
  private func report(_ side: Side) {
    // Both references leave the lock before they are released: a delegate's `deinit` may close the stream.
    let (delegate, stream) = look { (self[side].delegate, self[side].stream) }
    guard let delegate, let stream else { return }
    let news = change {
      let event = nextEvent(of: side)
      if let event { self[side].reported.insert(event) }
      return event
    }
    if let news { delegate.stream(stream, handle: news) }
  }

  private func nextEvent(of side: Side) -> Stream.Event? {
    guard self[side].status == .open else { return nil }
    let reported = self[side].reported
    if !reported.contains(.openCompleted) { return .openCompleted }
    let event: Stream.Event? =
      switch (side, currentStatus(of: side)) {
      case (_, .error): .errorOccurred
      case (.input, .atEnd): .endEncountered
      case (.input, _): count > 0 ? .hasBytesAvailable : nil
      case (.output, _): count < capacity ? .hasSpaceAvailable : nil
      }
    return event.flatMap { reported.contains($0) ? nil : $0 }
  }

  // MARK: - The lock

  private func look<T>(_ body: () -> T) -> T {
    condition.lock()
    defer { condition.unlock() }
    return body()
  }

  /// Runs a change under the lock, wakes both sides, and signals the run loops of each side that has an event to
  /// deliver.
  private func change<T>(_ body: () -> T) -> T {
    let (result, sources, observer) = look { () -> (T, [RunLoopSource], (@Sendable () -> Void)?) in
      let result = body()
      condition.broadcast()
      return (
        result, [Side.input, .output].flatMap { nextEvent(of: $0) == nil ? [] : self[$0].sources }, self.observer
      )
    }
    for source in sources { source.signal() }
    observer?()
    return result
  }
}

/// Runs a closure on a run loop's thread each time it is signalled. For any thread.
///
/// Foundation on Linux wakes a run loop only for a timer, and `RunLoop.run(mode:before:)` returns only for a source, as
/// programs with streams expect. The timer therefore wakes the loop, and the source, which the timer signals, runs the
/// closure.
final class RunLoopSource: @unchecked Sendable {
  private final class Source: RunLoop._Source {
    private let action: @Sendable () -> Void

    init(_ action: @escaping @Sendable () -> Void) {
      self.action = action
      super.init(order: 0)
    }

    override func perform() { action() }
  }

  /// Sendable: Core Foundation guards a source with its own locks.
  private struct Box: @unchecked Sendable {
    let source: Source
  }

  private let runLoop: RunLoop
  private let mode: RunLoop.Mode
  private let box: Box
  private let timer: Timer

  init(_ runLoop: RunLoop, _ mode: RunLoop.Mode, _ action: @escaping @Sendable () -> Void) {
    let box = Box(source: Source(action))
    self.runLoop = runLoop
    self.mode = mode
    self.box = box
    timer = Timer(fire: .distantFuture, interval: 1e9, repeats: true) { _ in box.source.signal() }
    runLoop._add(box.source, forMode: mode)
    runLoop.add(timer, forMode: mode)
  }

  func isOf(_ runLoop: RunLoop, _ mode: RunLoop.Mode) -> Bool { self.runLoop === runLoop && self.mode == mode }

  func signal() { timer.fireDate = Date() }

  func invalidate() {
    timer.invalidate()
    box.source.invalidate()
  }
}
