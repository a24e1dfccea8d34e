import AFNetworking
import Dispatch
import LarkspurTestServer

extension DemoPart {
  /// Ten operations, of which the first has to be over before the others begin.
  static let networkingBatch = DemoPart("AFNetworking: ten operations, one before the others") { stage in
    let queue = OperationQueue()
    let callbacks = DispatchQueue(label: "larkspur.demo.batch")
    let requestsBefore = stage.server.requestsReceived
    let operations = try (0..<10).map { number in
      let operation = AFHTTPRequestOperation(request: URLRequest(url: try stage.url("/anything/\(number)")))
      operation.responseSerializer = AFJSONResponseSerializer()
      // The demo's main thread has a loop of its own to turn.
      operation.completionQueue = callbacks
      return operation
    }
    for operation in operations.dropFirst() { operation.addDependency(operations[0]) }
    let batch = AFURLConnectionOperation.batch(
      ofRequestOperations: operations, progressBlock: nil, completionBlock: nil)
    await withCheckedContinuation { continuation in
      // A batch's own block is for the main queue, which nobody serves here.
      let end = BlockOperation { continuation.resume() }
      for operation in operations { end.addDependency(operation) }
      for case let operation as Operation in batch + [end] { queue.addOperation(operation) }
    }
    let finished = operations.count { $0.isFinished }
    let targets = stage.server.requests.suffix(stage.server.requestsReceived - requestsBefore).map(\.target)
    stage.say("asked for: \(targets.joined(separator: " "))")
    let numbers = operations.compactMap { ($0.responseObject as? [String: Any])?["target"] as? String }
    try DemoFailure.unless(finished == 10 && numbers.count == 10, "only \(numbers.count) operations have a result")
    try DemoFailure.unless(targets.first == "/anything/0", "the first one was not the first")
    return "\(finished) operations, the first one before the others"
  }
}
