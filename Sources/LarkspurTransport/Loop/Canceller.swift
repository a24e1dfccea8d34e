/// Ends what goes on at a channel, from any thread. It may be used at any time, also when all is over.
public struct Canceller: Sendable {
  let loop: ClientLoop
  let cancellation: ClientLoop.Cancellation

  public func cancel() { loop.post(cancellation) }
}
