import AFNetworking
import Dispatch
import LarkspurTestServer

extension DemoPart {
  /// Ten operations, the first of which has to finish before the others start.
  static let networkingBatch = DemoPart("AFNetworking: ten operations, one before the others") { stage in
    let queue = OperationQueue()
    let callbacks = DispatchQueue(label: "larkspur.demo.batch")
    let requestsBefore = stage.server.requestsReceived
    let operations = try (0..<10).map { number in
      let operation = AFHTTPRequestOperation(request: URLRequest(url: try stage.url("/anything/\(number)")))
      operation.responseSerializer = AFJSONResponseSerializer()
      // The main thread runs the demo's loop, and not the main queue.
      operation.completionQueue = callbacks
      return operation
    }
    for operation in operations.dropFirst() { operation.addDependency(operations[0]) }
    let batch = AFURLConnectionOperation.batch(
      ofRequestOperations: operations, progressBlock: nil, completionBlock: nil)
    await withCheckedContinuation { continuation in
      // The completion block of a batch runs on the main queue, which no thread serves here.
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
