import Dispatch
import Foundation
import Larkspur

/// States, and the loads that follow from them.
extension AFURLConnectionOperation {
  /// What a group is for operations that have none of their own.
  private static let completionGroup = DispatchGroup()

  var completionGroupOrShared: DispatchGroup { read { $0.completionGroup } ?? Self.completionGroup }
  var completionQueueOrMain: DispatchQueue { read { $0.completionQueue } ?? .main }

  /// Does what the machine has decided, outside of the lock.
  func perform(_ action: OperationMachine.Action) {
    switch action {
    case .nothing: break
    case .tellReadiness: didChangeValue(forKey: "isReady")
    case .load:
      didChangeValue(forKey: "isExecuting")
      load()
    case .loadLater: didChangeValue(forKey: "isExecuting")
    case .stopLoad:
      read { $0.load }?.stop()
      post(.AFNetworkingOperationDidFinish)
    case .cancelLoad: read { $0.load }?.stop()
    case .finishCancelled: finish(data: nil, error: cancellation)
    case .finish: break
    }
  }

  private var cancellation: any Error {
    let url = read { $0.request.url }
    return URLError(.cancelled, userInfo: url.map { [NSURLErrorFailingURLErrorKey: $0] } ?? [:])
  }

  /// Begins to load. The machine has seen to it that nobody else does.
  private func load() {
    let (settings, request, output) = read { details -> (OperationSessions.Settings, URLRequest, OperationOutput) in
      let output = details.output ?? OperationOutput(details.outputStream)
      details.output = output
      return (OperationSessions.Settings(details), details.request, output)
    }
    let next = continuation(of: request, after: read { $0.response }, count: output.count)
    let load = OperationLoad(self, output, request: next ?? request, isContinuation: next != nil)
    load.makeTask(in: OperationSessions.session(for: settings), priority: taskPriority)
    let isWanted = read { details -> Bool in
      details.sentRequest = next
      details.load = load
      return details.machine.wantsLoad
    }
    // Cancelled or paused just now: whoever did so has not seen this load.
    if !isWanted { load.stop() }
    post(.AFNetworkingOperationDidStart)
    load.begin()
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

  /// A load is over: the last call for it.
  func loadEnded(_ load: OperationLoad, data: Data?, error: (any Error)?) {
    let action = read { details -> OperationMachine.Action in
      details.load = nil
      return details.machine.loadEnded()
    }
    if action == .finish { finish(data: data, error: error) } else { perform(action) }
  }

  private func finish(data: Data?, error: (any Error)?) {
    let (completion, output) = read { details -> ((@Sendable () -> Void)?, OperationOutput?) in
      defer {
        details.completion = nil
        details.output = nil
        details.challengeBlock = nil
        details.redirectBlock = nil
        details.cacheBlock = nil
      }
      details.error = error
      details.responseData = data
      if data != nil { details.outputStream = nil }
      return (details.completion, details.output)
    }
    output?.close()
    didChangeValue(forKey: "isExecuting")
    didChangeValue(forKey: "isFinished")
    post(.AFNetworkingOperationDidFinish)
    if let completion { completionQueueOrMain.async(group: completionGroupOrShared) { completion() } }
  }

  // MARK: - Progress

  enum Direction { case up, down }

  /// Tells the block of the direction, one call after another.
  func tellProgress(_ direction: Direction, _ count: Int64, _ total: Int64, expected: Int64) {
    let (block, queue) = read { details -> (ProgressBlock?, DispatchQueue?) in
      let block = direction == .up ? details.uploadProgress : details.downloadProgress
      guard block != nil else { return (nil, nil) }
      // Serial, whatever the completion queue is.
      let queue =
        details.progressQueue
        ?? DispatchQueue(label: "afnetworking.operation-progress", target: details.completionQueue ?? .main)
      details.progressQueue = queue
      return (block, queue)
    }
    guard let block, let queue else { return }
    let carried = Carried(block)
    queue.async { carried.value(UInt(clamping: count), total, expected) }
  }
}
