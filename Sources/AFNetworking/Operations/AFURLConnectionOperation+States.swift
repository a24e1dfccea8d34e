import Dispatch
import Foundation
import Larkspur

/// The operation's states, and the loads that they start and stop.
extension AFURLConnectionOperation {
  /// The dispatch group of operations without a custom group.
  private static let completionGroup = DispatchGroup()

  var completionGroupOrShared: DispatchGroup { read { $0.completionGroup } ?? Self.completionGroup }
  var completionQueueOrMain: DispatchQueue { read { $0.completionQueue } ?? .main }

  /// Passes a fact to the machine, and performs its action.
  func handle(data: Data? = nil, error: (any Error)? = nil, _ fact: (inout OperationMachine) -> OperationMachine.Action)
  {
    perform(decide(data: data, error: error, fact))
  }

  /// Passes a fact to the machine. Stores the result under the same lock as the state, so that a thread that sees a
  /// finished operation also sees its result.
  func decide(
    data: Data? = nil, error: (any Error)? = nil, _ fact: (inout OperationMachine) -> OperationMachine.Action
  ) -> Decision {
    read { details in
      let action = fact(&details.machine)
      switch action {
      case .finish:
        details.error = error
        details.responseData = data
        if data != nil { details.outputStream = nil }
      case .finishCancelled:
        details.error = URLError.make(.cancelled, url: details.request.url)
      default: break
      }
      return Decision(action: action, load: details.load)
    }
  }

  /// The machine's action, with the load that it refers to: another load may have started when the action is performed.
  struct Decision {
    var action: OperationMachine.Action
    fileprivate var load: OperationLoad?
  }

  /// Performs the machine's action, outside of the lock.
  func perform(_ decision: Decision) {
    switch decision.action {
    case .nothing: break
    case .notifyReadiness: didChangeValue(forKey: "isReady")
    case .load:
      didChangeValue(forKey: "isExecuting")
      load()
    case .loadLater: didChangeValue(forKey: "isExecuting")
    case .stopLoad:
      decision.load?.stop()
      post(.AFNetworkingOperationDidFinish)
    case .cancelLoad: decision.load?.stop()
    case .finish, .finishCancelled: finish()
    }
  }

  /// Starts a load. The machine ensures that only one thread does this at a time.
  private func load() {
    let (settings, request, output) = read { details -> (OperationSessions.Settings, URLRequest, OperationOutput) in
      let output = details.output ?? OperationOutput(details.outputStream)
      details.output = output
      return (OperationSessions.Settings(details), details.request, output)
    }
    let next = output.continuation?.request(request, after: output.count)
    let load = OperationLoad(self, output, request: next ?? request, isContinuation: next != nil)
    load.makeTask(in: OperationSessions.session(for: settings), priority: taskPriority)
    let isWanted = read { details -> Bool in
      details.sentRequest = next
      details.load = load
      return details.machine.needsLoad
    }
    // A cancellation or a pause that came just now has not seen this load.
    if !isWanted { load.stop() }
    post(.AFNetworkingOperationDidStart)
    load.start()
  }

  private var taskPriority: Float {
    switch queuePriority {
    case .veryLow: 0
    case .low: URLSessionTask.lowPriority
    case .high: URLSessionTask.highPriority
    case .veryHigh: 1
    default: URLSessionTask.defaultPriority
    }
  }

  /// Reports the end of a load: its last call.
  func loadEnded(_ load: OperationLoad, data: Data?, error: (any Error)?) {
    read { $0.load = nil }
    handle(data: data, error: error) { $0.loadEnded() }
  }

  private func finish() {
    // The old values are released when this call returns, and not while the lock is held.
    let own = read { details in
      defer {
        details.exitHold = nil
        details.completion = nil
        details.output = nil
        details.challengeBlock = nil
        details.redirectBlock = nil
        details.cacheBlock = nil
      }
      return details
    }
    own.output?.close()
    defer { own.exitHold?.end() }
    didChangeValue(forKey: "isExecuting")
    didChangeValue(forKey: "isFinished")
    let dependencies = dependencies
    read { $0.formerDependencies = dependencies }
    leave(dependencies)
    post(.AFNetworkingOperationDidFinish)
    guard let completion = own.completion else { return }
    let queue = completionQueueOrMain
    queue.async(group: completionGroupOrShared) {
      // Post the end's notification before the completion block is called.
      withExtendedLifetime(self) { queue.isMain ? NotificationOutbox.main.batching(completion) : completion() }
    }
  }

  // MARK: - Progress

  enum Direction { case up, down }

  /// Calls the progress block of the direction, one call after another.
  func reportProgress(_ direction: Direction, _ count: Int64, _ total: Int64, expected: Int64) {
    let (block, queue) = read { details -> (ProgressBlock?, DispatchQueue?) in
      let block = direction == .up ? details.uploadProgress : details.downloadProgress
      guard block != nil else { return (nil, nil) }
      // A serial queue, because the completion queue may be concurrent.
      let queue =
        details.progressQueue
        ?? DispatchQueue(label: "afnetworking.operation-progress", target: details.completionQueue ?? .main)
      details.progressQueue = queue
      return (block, queue)
    }
    guard let block, let queue else { return }
    let carried = UncheckedSendable(block)
    queue.async { carried.value(UInt(clamping: count), total, expected) }
  }
}
