import Foundation

/// The checks of the tests that need a process of their own, one command for each: they measure the memory, the
/// descriptors or the threads of the process, change its limits, live in another environment or network, or are killed.
///
/// Usage: `TestHelper COMMAND [ARGUMENT...]`. The file of a command documents its arguments. A failure exits with 1 and
/// goes to the standard error, like an unknown command, which exits with 2. What a command prints goes to the standard
/// output, which holds nothing else.
@main struct TestHelper {
  /// How a command runs, with the arguments after its name.
  enum Command: Sendable {
    /// The command runs on the main thread.
    case blocking(@Sendable (_ arguments: [String]) throws -> Void)
    /// The command runs on the main actor, like an asynchronous main function.
    case suspending(@Sendable (_ arguments: [String]) async throws -> Void)
  }

  private static let commands: [(name: String, command: Command)] = [
    ("autobahn", .suspending(runAutobahn)),
    ("background-bars", .suspending(runBackgroundBars)),
    ("background-session", .suspending(runBackgroundSession)),
    ("cache-writer", .suspending(runCacheWriter)),
    ("connectivity", .suspending(runConnectivity)),
    ("cookie-writer", .blocking(runCookieWriter)),
    ("descriptor-shortage", .suspending(runDescriptorShortage)),
    ("exit-hold", .blocking(runExitHold)),
    ("failed-waits", .blocking(runFailedWaits)),
    ("handshake-leaks", .suspending(runHandshakeLeaks)),
    ("idle-sockets", .suspending(runIdleSockets)),
    ("journal-writer", .blocking(runJournalWriter)),
    ("memory-errors", .blocking(runMemoryErrors)),
    ("multipart-footprint", .suspending(runMultipartFootprint)),
    ("races", .suspending(runRaces)),
    ("reachability", .blocking(runReachability)),
    ("session", .suspending(runSessionScenario)),
    ("session-footprint", .suspending(runSessionFootprint)),
    ("user-reports-table", .blocking(runUserReportsTable)),
  ]

  static func main() {
    let words = CommandLine.arguments.dropFirst()
    guard let name = words.first, let command = commands.first(where: { $0.name == name })?.command else {
      let names = commands.map(\.name).joined(separator: ", ")
      complain("no command \"\(words.first ?? "")\"; there are \(names)")
      exit(2)
    }
    let arguments = Array(words.dropFirst())
    switch command {
    case .blocking(let run):
      do {
        try run(arguments)
        exit(0)
      } catch {
        complain("\(name): \(error)")
        exit(1)
      }
    case .suspending(let run):
      // An asynchronous main function has this priority.
      Task(priority: .medium) { @MainActor in
        do {
          try await run(arguments)
          exit(0)
        } catch {
          complain("\(name): \(error)")
          exit(1)
        }
      }
      dispatchMain()
    }
  }

  private static func complain(_ words: String) {
    FileHandle.standardError.write(Data("TestHelper: \(words)\n".utf8))
  }
}

/// The failure of a command, with the message for the test's output.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }

  static let wrongArguments = Failure("wrong arguments; the command's file documents them")
}

/// Prints and flushes, so that a process that reads the output gets it at once.
func say(_ text: String) {
  print(text)
  fflush(nil)
}

/// Returns the field `name` of /proc/self/status, in KiB.
func statusKiB(_ name: String) -> Int {
  let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
  let line = text.split(separator: "\n").first { $0.hasPrefix(name + ":") }
  return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
}
