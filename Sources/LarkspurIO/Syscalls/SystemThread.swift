@_implementationOnly import CLarkspurLinux

/// A thread of the system's, outside Swift's own pool: one that may block.
public struct SystemThread: Sendable {
  private let thread: UInt

  /// Starts a thread that runs `body` to its end. `name` shows in debuggers; the kernel keeps 15 bytes of it.
  public init(name: String, _ body: @escaping @Sendable () -> Void) throws(Errno) {
    let box = unsafe Unmanaged.passRetained(Body(name: name, run: body))
    var thread = pthread_t()
    // Safe: the box is retained for the thread, which takes that reference over.
    let error = unsafe pthread_create(
      &thread, nil,
      { argument in
        guard let argument = unsafe argument else { return nil }
        let body = unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
        unsafe larkspur_name_thread(String(body.name.prefix(15)))
        body.run()
        return nil
      }, box.toOpaque())
    guard error == 0 else {
      unsafe box.release()
      throw Errno(rawValue: error)
    }
    self.thread = thread
  }

  /// Waits for the thread's end. Call it once, or `detach`, for every thread.
  public func join() { _ = pthread_join(thread, nil) }

  /// Lets the thread clean up after itself.
  public func detach() { _ = pthread_detach(thread) }

  /// The calling thread's identity: equal on the same thread only.
  public static var currentIdentity: UInt64 { larkspur_thread_identity() }

  private final class Body: Sendable {
    let name: String
    let run: @Sendable () -> Void

    init(name: String, run: @escaping @Sendable () -> Void) {
      self.name = name
      self.run = run
    }
  }
}
