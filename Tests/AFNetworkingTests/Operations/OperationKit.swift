import AFNetworking
import Foundation
import LarkspurTestServer
import Synchronization
import Testing

/// Functions that the tests of operations share.
enum OperationKit {
  /// The completion queue of operations in tests, since the main queue may be busy.
  static let queue = DispatchQueue(label: "operation-tests")

  static func request(_ text: String) throws -> URLRequest { URLRequest(url: try #require(URL(string: text))) }

  static func operation<Kind: AFURLConnectionOperation>(_ type: Kind.Type, _ url: String) throws -> Kind {
    let operation = type.init(request: try request(url))
    operation.completionQueue = queue
    return operation
  }

  /// Adds the operations of a batch to a queue. Foundation does not offer this function to async code, where it could
  /// block.
  static func add(_ operations: [Any], to queue: OperationQueue = OperationQueue()) {
    queue.addOperations(operations.compactMap { $0 as? Operation }, waitUntilFinished: false)
  }

  /// The number of dependents that Foundation would visit when an operation finishes. Foundation has no public property
  /// for this.
  static func dependents(of operation: Operation) throws -> Int {
    var mirror: Mirror? = Mirror(reflecting: operation)
    while let kind = mirror, kind.subjectType != Operation.self { mirror = kind.superclassMirror }
    let dependents = mirror?.children.first { $0.label == "__downDependencies" }
    return try Mirror(reflecting: #require(dependents).value).children.count
  }

  static func directory() throws -> URL {
    let directory = FileManager.default.temporaryDirectory.appending(path: "operations-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    return directory
  }
}

extension Operation {
  /// Suspends until the operation has finished, by an operation that depends on it.
  func isOver() async {
    await withCheckedContinuation { continuation in
      let next = BlockOperation { continuation.resume() }
      next.addDependency(self)
      let queue = OperationQueue()
      queue.addOperation(next)
      // Foundation can miss a dependency that finishes while the operation is being added. Setting `isSuspended` makes
      // the queue check again.
      queue.isSuspended = false
    }
  }
}

extension AFURLConnectionOperation {
  /// Starts the operation and suspends until it has finished.
  func run() async {
    start()
    await isOver()
  }
}

/// Values that blocks deliver, to be awaited one after another.
final class Results<Value>: @unchecked Sendable {
  private let stream: AsyncStream<Carrier>
  private let continuation: AsyncStream<Carrier>.Continuation
  private var iterator: AsyncStream<Carrier>.AsyncIterator

  private struct Carrier: @unchecked Sendable {
    let value: Value
  }

  init() {
    (stream, continuation) = AsyncStream.makeStream()
    iterator = stream.makeAsyncIterator()
  }

  func add(_ value: Value) { continuation.yield(Carrier(value: value)) }

  func next() async throws -> Value { try #require(await iterator.next()?.value) }
}
