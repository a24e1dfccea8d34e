// Larkspur as a client of `Benchmarks/compare`: code that runs on the loop, over the transport's own API.
// Called as `larkspur-bench [--pool] WORKLOAD HOST PORT REQUESTS [CA_FILE]`; the contract is in Benchmarks/README.md.

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

guard let arguments = Arguments(CommandLine.arguments) else {
  complain("usage: larkspur-bench [--pool] WORKLOAD HOST PORT REQUESTS [CA_FILE]")
  exit(2)
}

// The pool is who puts requests one behind another, and it opens no more connections than it needs.
guard arguments.usesPool ? arguments.workload.lifetime != .idle : arguments.workload.depth == 1 else {
  print("{\"unsupported\":true}")
  exit(0)
}

// The loop runs on the main thread: there is no other, so that a profile shows the client and nothing else.
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
  while true { loop.takeTurn() }
} catch {
  complain("larkspur-bench: \(error)")
  exit(1)
}
