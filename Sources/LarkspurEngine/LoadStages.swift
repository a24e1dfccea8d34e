/// The next stage of a load.
public enum LoadStage: Sendable {
  case created
  case requested
  case preparing
  case prepared
  case answered
  case classified
  case delivering
  case delivered
  case complete
}

/// The stages of a load, in their order. A stage never waits: if something must be awaited or provided first, the stage
/// returns a `Stop`.
///
/// ```
///  start -> findSource -> prepare -> send -> classify -> settle -> deliver -> conclude -> complete
///               ^                                          |                     |
///               '------------- redirection, credential, another part ------------'
/// ```
///
/// A stage that is done enters the next one. The loads of all clients have these stages; each client's load implements
/// them for its own requests, responses and options. A load belongs to its loop.
public protocol LoadStages: AnyObject {
  /// Why the stages have stopped: what has to be provided or awaited.
  associatedtype Stop
  associatedtype Failure: Error

  var stage: LoadStage { get set }

  /// Begins the load.
  func start() throws(Failure) -> Stop?
  /// Finds the target of the current request.
  func findSource() throws(Failure) -> Stop?
  /// Prepares the current request: its route, fields and body.
  func prepare() throws(Failure) -> Stop?
  /// Sends the request, up to its response's head.
  func send() throws(Failure) -> Stop?
  /// Reads the head, and decides what follows it.
  func classify() throws(Failure) -> Stop?
  /// Carries the decision out: delivers the response, or drops it for another request.
  func settle() throws(Failure) -> Stop?
  /// Hands the response's content to the load's owner.
  func deliver() throws(Failure) -> Stop?
  /// Ends the exchange.
  func conclude() throws(Failure) -> Stop?
}

extension LoadStages {
  /// Runs the stages in their order, as far as they go without waiting.
  ///
  /// Performance: inlined, so that each client has the loop for its own class. The compiler does that for public
  /// functions only: other modules do not see the body of a `package` function.
  ///
  /// - Returns: Why they have stopped, or `nil` if the load is complete.
  @inlinable
  @inline(__always)
  public func advance() throws(Failure) -> Stop? {
    while true {
      let stop: Stop? =
        switch stage {
        case .created: try start()
        case .requested: try findSource()
        case .preparing: try prepare()
        case .prepared: try send()
        case .answered: try classify()
        case .classified: try settle()
        case .delivering: try deliver()
        case .delivered: try conclude()
        case .complete: nil
        }
      if let stop { return stop }
      if case .complete = stage { return nil }
    }
  }

  @inlinable
  @inline(__always)
  public func enter(_ stage: LoadStage) { self.stage = stage }
}
