/// Cancels one use of a channel, from any thread. After the end of that use it does nothing.
public struct Canceller: Sendable {
  let loop: ClientLoop
  let cancellation: ClientLoop.Cancellation

  public func cancel() { loop.post(cancellation) }
}
