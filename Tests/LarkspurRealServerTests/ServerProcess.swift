import Glibc
import LarkspurIO

/// A program that runs in the foreground, as our child, until we end it.
///
/// Foundation's `Process` hands the signal mask of the calling thread down, and on the threads of Swift's pool all
/// signals are blocked: a server that was started there could not be told to end.
struct ServerProcess {
  private let identifier: pid_t

  /// Starts it, and reads what it writes until it says `readyWords`. Throws what it said if it ends instead.
  init(_ program: String, _ arguments: [String], readyWords: String) throws(RealServer.Unavailable) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw RealServer.Unavailable(description: "no pipe") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

    var list = ([program] + arguments).map { strdup($0) }
    list.append(nil)
    defer { for text in list { free(text) } }
    var identifier: pid_t = 0
    let error = posix_spawn(&identifier, program, &actions, &attributes, list, environ)
    close(ends[1])
    guard error == 0 else {
      close(ends[0])
      throw RealServer.Unavailable(description: "\(program): \(Errno(rawValue: error))")
    }
    self.identifier = identifier

    let output = ends[0]
    var text = ""
    while !text.contains(readyWords) {
      guard let more = Self.read(output) else {
        close(output)
        Self.reap(identifier)
        throw RealServer.Unavailable(description: "\(program) does not start: \(text.suffix(2000))")
      }
      text += more
    }
    // Its log goes on, and must not stop it by filling the pipe.
    let drain = try? SystemThread(name: "server-log") {
      while Self.read(output) != nil {}
      close(output)
    }
    drain?.detach()
  }

  /// Ends it in order, and waits until it has.
  func end() {
    kill(identifier, SIGTERM)
    Self.reap(identifier)
  }

  private static func read(_ descriptor: Int32) -> String? {
    var bytes = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = Glibc.read(descriptor, &bytes, bytes.count)
      if count < 0, errno == EINTR { continue }
      return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
  }

  private static func reap(_ identifier: pid_t) {
    var status: Int32 = 0
    while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
  }
}
