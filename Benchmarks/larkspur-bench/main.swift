// Larkspur as a client of `Benchmarks/compare`: code that runs on the loop, over the transport's own API.
// Called as `larkspur-bench [--pool] [--instant] [--loops N] WORKLOAD HOST PORT REQUESTS [CA_FILE]`; the contract is in
// Benchmarks/README.md.

import Glibc
import LarkspurIO
import LarkspurTransport

func complain(_ text: String) {
  let line = text + "\n"
  write(STDERR_FILENO, line, line.utf8.count)
}

func measure(_ arguments: Arguments, on loop: ClientLoop) async throws {
  let runner = try Runner(arguments, on: loop)
  try await runner.prepare()
  try await runner.run(arguments.warmUpRequests)
  let measurement = Measurement(of: arguments)
  try await runner.run(arguments.requests)
  measurement.finish()
  runner.close()
}

/// Measures on several loops at once, which start together after all have warmed up.
func measureOnSeveralLoops(_ arguments: Arguments) async throws {
  var share = arguments
  share.requests = arguments.requests / arguments.loops
  let loops = try (0..<arguments.loops).map { number in
    let kernel: any Kernel =
      arguments.isInstant ? InstantKernel(bodyBytes: arguments.workload.bodyBytes) : LinuxKernel.shared
    return try ClientLoop(name: "larkspur-bench-\(number)", on: kernel)
  }
  let laps = try await withThrowingTaskGroup(of: Lap.self) { [share] group in
    for loop in loops {
      group.addTask {
        try await loop.run { () async throws in
          let runner = try Runner(share, on: loop)
          try await runner.prepare()
          try await runner.run(share.warmUpRequests)
          return Lap(loop: loop, runner: runner)
        }
      }
    }
    return try await group.reduce(into: []) { $0.append($1) }
  }
  let measurement = Measurement(of: arguments)
  try await withThrowingTaskGroup(of: Void.self) { [share] group in
    for lap in laps {
      group.addTask { try await lap.loop.run { () async throws in try await lap.runner.run(share.requests) } }
    }
    try await group.waitForAll()
  }
  measurement.finish()
}

/// A runner that only its loop uses.
struct Lap: @unchecked Sendable {
  let loop: ClientLoop
  let runner: Runner
}

guard let arguments = Arguments(CommandLine.arguments) else {
  complain("usage: larkspur-bench [--pool] [--instant] [--loops N] WORKLOAD HOST PORT REQUESTS [CA_FILE]")
  exit(2)
}

// Only the pool pipelines requests.
guard !arguments.workload.isForSessions, arguments.usesPool || arguments.workload.depth == 1 else {
  print("{\"unsupported\":true}")
  exit(0)
}

if arguments.loops > 1 || arguments.isInstant {
  // The work runs on other threads; the main thread only waits.
  Task.detached {
    do {
      try await measureOnSeveralLoops(arguments)
      exit(0)
    } catch {
      complain("larkspur-bench: \(error)")
      exit(1)
    }
  }
  while true { pause() }
}

// The loop ticks on the main thread, the only thread, so that a profile shows nothing but the client.
do {
  let loop = try ClientLoop(withoutThreadOn: LinuxKernel.shared)
  Task(executorPreference: loop) { @concurrent in
    do {
      try await measure(arguments, on: loop)
      exit(0)
    } catch {
      complain("larkspur-bench: \(error)")
      exit(1)
    }
  }
  while true { loop.tick() }
} catch {
  complain("larkspur-bench: \(error)")
  exit(1)
}
