import Glibc
import LarkspurIO
import Synchronization
import Testing

// glibc declares these functions only under `_GNU_SOURCE`, which its Swift module does not define.

@_silgen_name("pipe2")
private func pipe2(_ ends: UnsafeMutablePointer<Int32>, _ flags: Int32) -> Int32

@_silgen_name("posix_openpt")
private func posix_openpt(_ flags: Int32) -> Int32

@_silgen_name("grantpt")
private func grantpt(_ master: Int32) -> Int32

@_silgen_name("unlockpt")
private func unlockpt(_ master: Int32) -> Int32

@_silgen_name("ptsname")
private func ptsname(_ master: Int32) -> UnsafeMutablePointer<CChar>?

@_silgen_name("posix_spawn_file_actions_addchdir_np")
private func changeDirectory(
  _ actions: UnsafeMutablePointer<posix_spawn_file_actions_t>, _ path: UnsafePointer<CChar>
) -> Int32

@_silgen_name("posix_spawn_file_actions_addclosefrom_np")
private func closeFrom(_ actions: UnsafeMutablePointer<posix_spawn_file_actions_t>, _ first: Int32) -> Int32

/// The built command in a process of its own.
///
/// Two threads read its output and its errors, so that neither pipe can block the command, and a third thread waits for
/// its exit. A test only suspends.
final class Command: Sendable {
  struct Result: Sendable {
    /// The exit status. If a signal ended the process, minus the sum of 128 and the signal's number.
    var status: Int32
    var output: [UInt8]
    var errors: String

    var text: String { String(decoding: output, as: UTF8.self) }
  }

  struct SpawnError: Error {
    var number: Int32
  }

  /// The destination of a standard stream.
  enum Stream {
    /// A pipe that is read to its end.
    case collected
    /// A pipe whose reading end is closed.
    case broken
    /// A pipe that is never read, so it becomes full.
    case unread
    /// A terminal that is read to its end.
    case terminal
  }

  private let process: pid_t
  private let output: Collected
  private let errors: Collected
  private let input: Int32
  private let unread: [Int32]

  /// Starts a program with these arguments. The process gets only those environment variables of the test that it needs
  /// to run.
  init(
    _ arguments: [String], of program: String = "larkspur", environment added: [String: String] = [:],
    output: Stream = .collected,
    errors: Stream = .collected, directory: String? = nil
  ) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    let (inputEnd, input) = try Self.pipe()
    let (outputReader, outputEnd) = try Self.open(output)
    let (errorReader, errorEnd) = try Self.open(errors)
    for (number, end) in [inputEnd, outputEnd, errorEnd].enumerated() {
      posix_spawn_file_actions_adddup2(&actions, end, Int32(number))
    }
    if let directory { _ = changeDirectory(&actions, directory) }
    // Closes inherited descriptors: other tests wait for the end of their pipes, which the command would keep open.
    _ = closeFrom(&actions, 3)

    // Resets the signals: Swift's threads block most of them, and a shell's background job ignores some.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    for signal in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&signals, signal) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    let path = try Self.path(of: program)
    var words = ([path] + arguments).map { strdup($0) } + [nil]
    var environment =
      ["PATH", "LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"].filter { added[$0] == nil }.compactMap { name in
        EnvironmentVariable.value(of: name).map { strdup("\(name)=\($0)") }
      } + added.map { strdup("\($0)=\($1)") } + [strdup("TERM=xterm"), nil]
    defer { for word in words + environment { free(word) } }
    var process = pid_t()
    let error = posix_spawn(&process, path, &actions, &attributes, &words, &environment)
    for end in [inputEnd, outputEnd, errorEnd] { close(end) }
    guard error == 0 else { throw SpawnError(number: error) }
    self.process = process
    self.input = input
    self.output = Collected(output == .unread ? -1 : outputReader)
    self.errors = Collected(errors == .unread ? -1 : errorReader)
    unread = (output == .unread ? [outputReader] : []) + (errors == .unread ? [errorReader] : [])
  }

  deinit {
    for descriptor in unread { close(descriptor) }
  }

  /// Writes all of the standard input, and waits for the process to exit.
  ///
  /// - Parameter leavingInputOpen: Whether the input ends only when the process has exited.
  func end(input bytes: [UInt8] = [], leavingInputOpen: Bool = false) async throws -> Result {
    let (input, process, output, errors) = (input, process, output, errors)
    return try await withCheckedThrowingContinuation { continuation in
      do {
        try SystemThread(name: "command") {
          Self.writeAll(bytes, to: input)
          if !leavingInputOpen { close(input) }
          var status: Int32 = 0
          waitpid(process, &status, 0)
          if leavingInputOpen { close(input) }
          let result = Result(
            status: status & 0x7f == 0 ? status >> 8 & 0xff : -128 - status & 0x7f, output: output.bytes(),
            errors: String(decoding: errors.bytes(), as: UTF8.self))
          continuation.resume(returning: result)
        }.detach()
      } catch {
        continuation.resume(throwing: error)
      }
    }
  }

  /// Writes all bytes. A command that does not read its input may exit early, so errors are ignored.
  private static func writeAll(_ bytes: [UInt8], to descriptor: Int32) {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        // A process that was stopped by a signal continues with a part of its write.
        let count = write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return }
      }
    }
  }

  func send(signal: Int32) { kill(process, signal) }

  /// Runs a command to its end.
  static func run(
    _ arguments: String..., input: [UInt8] = [], output: Stream = .collected, errors: Stream = .collected
  ) async throws -> Result {
    try await Command(arguments, output: output, errors: errors).end(input: input)
  }

  // MARK: - Pieces

  /// The path of a program, which lies beside the test bundle.
  static func path(of program: String = "larkspur") throws -> String {
    let bundle = try FilePaths.resolved("/proc/self/exe")
    return bundle.split(separator: "/").dropLast().map { "/" + $0 }.joined() + "/" + program
  }

  private static func pipe() throws -> (reader: Int32, writer: Int32) {
    var ends: [Int32] = [-1, -1]
    // Close-on-exec, so that another command that starts meanwhile does not keep this pipe open.
    guard pipe2(&ends, O_CLOEXEC) == 0 else { throw SpawnError(number: errno) }
    return (ends[0], ends[1])
  }

  /// Opens the two ends of a stream: the one that the test reads (-1 for none) and the one that the command writes.
  private static func open(_ stream: Stream) throws -> (reader: Int32, writer: Int32) {
    switch stream {
    case .collected, .unread: return try pipe()
    case .broken:
      let (reader, writer) = try pipe()
      close(reader)
      return (-1, writer)
    case .terminal:
      let master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)
      guard master >= 0, grantpt(master) == 0, unlockpt(master) == 0, let name = ptsname(master) else {
        throw SpawnError(number: errno)
      }
      let slave = Glibc.open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)
      guard slave >= 0 else { throw SpawnError(number: errno) }
      return (master, slave)
    }
  }

  /// Reads a descriptor to its end on a thread of its own.
  private final class Collected: Sendable {
    private let content = Mutex<[UInt8]>([])
    private let ended = Latch()

    init(_ descriptor: Int32) {
      guard descriptor >= 0 else {
        ended.open()
        return
      }
      let thread = try? SystemThread(name: "collect") { [self] in
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
          // A terminal that no process has open any more reports EIO in place of an end.
          let count = read(descriptor, &buffer, buffer.count)
          guard count > 0 else { break }
          content.withLock { $0 += buffer.prefix(count) }
        }
        close(descriptor)
        ended.open()
      }
      thread?.detach()
    }

    func bytes() -> [UInt8] {
      ended.wait()
      return content.withLock { $0 }
    }
  }
}
