import Glibc

/// A thread of the system, outside Swift's thread pool, which may block.
public struct SystemThread: Sendable {
  private let thread: UInt

  /// Starts a thread that runs `body` to its end.
  ///
  /// - Parameter name: The name that debuggers show, cut to 15 characters. The kernel's limit is 15 bytes.
  public init(name: String, _ body: @escaping @Sendable () -> Void) throws(Errno) {
    let box = unsafe Unmanaged.passRetained(Body(name: name, run: body))
    var thread = pthread_t()
    // Safe: the box is retained for the thread, which releases it.
    let error = unsafe pthread_create(
      &thread, nil,
      { argument in
        guard let argument = unsafe argument else { return nil }
        let body = unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
        unsafe pthread_setname_np(pthread_self(), String(body.name.prefix(15)))
        body.run()
        return nil
      }, box.toOpaque())
    guard error == 0 else {
      unsafe box.release()
      throw Errno(rawValue: error)
    }
    self.thread = thread
  }

  /// Waits for the thread's end. Every thread needs one call of `join` or of `detach`.
  public func join() { _ = pthread_join(thread, nil) }

  /// Makes the system free the thread's resources when it ends.
  public func detach() { _ = pthread_detach(thread) }

  /// A number that identifies the calling thread among all running threads. Performance: one register read.
  public static var currentIdentity: UInt64 { UInt64(pthread_self()) }

  private final class Body: Sendable {
    let name: String
    let run: @Sendable () -> Void

    init(name: String, run: @escaping @Sendable () -> Void) {
      self.name = name
      self.run = run
    }
  }
}
