import Dispatch
import Glibc
import LarkspurIO

// glibc declares these functions only under `_GNU_SOURCE`, which Swift's Glibc module does not define.

@_silgen_name("pipe2")
private func pipe2(_ ends: UnsafeMutablePointer<Int32>, _ flags: Int32) -> Int32

@_silgen_name("posix_spawn_file_actions_addclosefrom_np")
private func closeFrom(_ actions: UnsafeMutablePointer<posix_spawn_file_actions_t>, _ first: Int32) -> Int32

/// A child process that runs a program in the foreground until it is ended.
///
/// Foundation's `Process` passes the signal mask of the calling thread on, and the threads of Swift's pool block all
/// signals, so that a server started there could not be ended by a signal.
struct ServerProcess {
  let identifier: pid_t
  /// The output until the program was ready.
  let greeting: String

  /// Starts a program, and reads its output until it has printed `readyText`.
  ///
  /// - Parameter directory: The working directory, or `nil` for the present one.
  /// - Parameter readyWords: Text that the program prints when it is ready, or `nil` if it prints nothing.
  /// - Throws: An error with the program's output if the program ends before it is ready.
  init(
    _ program: String, _ arguments: [String], in directory: String? = nil, readyText: String?
  ) throws(RealServer.Unavailable) {
    let (identifier, output) = try Self.start(program, arguments, in: directory)
    self.identifier = identifier
    var text = ""
    // Waits for the rest of the line that contains the text.
    while let readyText, text.firstRange(of: readyText).map({ text[$0.upperBound...].contains("\n") }) != true {
      guard let more = Self.read(output) else {
        close(output)
        _ = Self.reap(identifier)
        throw RealServer.Unavailable(description: "\(program) does not start: \(text.suffix(2000))")
      }
      text += more
    }
    greeting = text
    // Reads the further output, which would otherwise fill the pipe and block the program.
    let drain = try? SystemThread(name: "server-log") {
      while Self.read(output) != nil {}
      close(output)
    }
    drain?.detach()
  }

  /// Ends the process, and waits until it has ended.
  ///
  /// - Parameter hasChildren: Whether the process has to end children of its own, and therefore gets SIGTERM. Other
  ///   processes are killed: nginx, as a single process, may check for signals, get one, and then wait for events for
  ///   ever.
  func end(hasChildren: Bool = false) {
    kill(identifier, hasChildren ? SIGTERM : SIGKILL)
    _ = Self.reap(identifier)
  }

  /// Waits until the process has ended by itself.
  func wait() { _ = Self.reap(identifier) }

  /// Sends a signal until the process has ended: a signal that comes before the process handles signals is lost.
  func end(by signal: Int32) throws(Errno) {
    let hasEnded = DispatchSemaphore(value: 0)
    let waiter = try SystemThread(name: "server-end") { [identifier] in
      _ = Self.reap(identifier)
      hasEnded.signal()
    }
    waiter.detach()
    repeat { kill(identifier, signal) } while hasEnded.wait(timeout: .now() + .milliseconds(100)) == .timedOut
  }

  /// Runs a program to its end.
  ///
  /// - Throws: An error with the program's output if the program fails.
  static func run(_ program: String, _ arguments: [String]) throws(RealServer.Unavailable) {
    let (identifier, output) = try start(program, arguments, in: nil)
    var text = ""
    while let more = read(output) { text += more }
    close(output)
    guard reap(identifier) == 0 else {
      throw RealServer.Unavailable(description: "\(program) \(arguments): \(text.suffix(2000))")
    }
  }

  /// Starts a program.
  ///
  /// - Returns: The process's identifier, and the reading end of the pipe for its output, which the caller closes.
  static func start(
    _ program: String, _ arguments: [String], in directory: String? = nil
  ) throws(RealServer.Unavailable) -> (pid_t, Int32) {
    var ends: [Int32] = [0, 0]
    // Close-on-exec from the beginning: a program that another test starts meanwhile must not inherit the pipe.
    guard pipe2(&ends, O_CLOEXEC) == 0 else { throw RealServer.Unavailable(description: "no pipe") }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2)
    // Closes descriptors of other tests, which would otherwise stay open as long as the server runs.
    _ = closeFrom(&actions, 3)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

    // The shell changes the directory, and becomes the program.
    let shell = directory.map { ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", $0] } ?? []
    var list = (shell + [program] + arguments).map { strdup($0) }
    list.append(nil)
    defer { for text in list { free(text) } }
    var identifier: pid_t = 0
    let error = posix_spawn(&identifier, shell.first ?? program, &actions, &attributes, list, environ)
    close(ends[1])
    guard error == 0 else {
      close(ends[0])
      throw RealServer.Unavailable(description: "\(program): \(Errno(rawValue: error))")
    }
    return (identifier, ends[0])
  }

  /// Waits for more output, and returns it, or `nil` at its end.
  static func read(_ descriptor: Int32) -> String? {
    var bytes = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = Glibc.read(descriptor, &bytes, bytes.count)
      if count < 0, errno == EINTR { continue }
      return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
  }

  static func reap(_ identifier: pid_t) -> Int32 {
    var status: Int32 = 0
    while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
    return status
  }
}
