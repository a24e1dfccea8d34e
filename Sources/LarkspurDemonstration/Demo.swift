import Glibc
import LarkspurBytes
import LarkspurConsole
import LarkspurIO
import LarkspurTestServer
import LarkspurTransport

/// Shows Larkspur's main jobs on real traffic over the loopback interface: runs one part after another, each against
/// test servers in this process, and ends with a table.
@main
struct Demo {
  /// The parts, in the order in which they are shown. Each new capability gets a part here.
  private static let parts: [DemoPart] = [
    .jsonRequest, .keptAliveRequests, .chunkedStream, .download, .lyingServer, .pinnedRequest, .wrongPin,
    .resumedHandshake, .resumedDownload, .killedDownload, .digestLogin, .revalidatedRequest, .compressedRequest,
    .webSocketEcho,
    .eventStream,
    .networkingRequests, .networkingUpload, .networkingPin, .networkingBatch,
  ]

  private let loop: ClientLoop
  private let style = Style.forStandardOutput

  /// Runs the program, which exits with 0 if all went well, otherwise with 1.
  static func main() async {
    if let program = KilledProgram(CommandLine.arguments.dropFirst()) { program.run() }
    do {
      let loop = try ClientLoop()
      let stage = try DemoStage(on: loop)
      exit(await loop.run { await Demo(loop: loop).run(on: stage) } ? EXIT_SUCCESS : EXIT_FAILURE)
    } catch {
      Console.complain("the demonstration could not start: \(error)")
      exit(EXIT_FAILURE)
    }
  }

  /// - Returns: Whether all parts went well.
  private func run(on stage: DemoStage) async -> Bool {
    Console.print("Larkspur, with test servers at \(stage.server.url()) and \(stage.secureURL("/"))\n")
    var outcomes: [(part: DemoPart, outcome: Outcome)] = []
    for (index, part) in Self.parts.enumerated() {
      Console.print("\n" + style.bold("\(index + 1). \(part.title)") + "\n")
      let outcome = await perform(part, on: stage)
      if case .failed(let message) = outcome.result { stage.say("FAILED: \(message)") }
      outcomes.append((part, outcome))
    }
    stage.server.stop()
    stage.secureServer.stop()
    Console.print("\n" + table(outcomes) + "\n")
    let failed = outcomes.count { !$0.outcome.isSuccess }
    Console.print(
      failed == 0
        ? "All \(outcomes.count) parts went well.\n" : "\(failed) of \(outcomes.count) parts failed.\n")
    return failed == 0
  }

  private struct Outcome {
    enum Result {
      case succeeded(String)
      case failed(String)
    }

    var result: Result
    var time: Duration

    var isSuccess: Bool { if case .succeeded = result { true } else { false } }
  }

  private func perform(_ part: DemoPart, on stage: DemoStage) async -> Outcome {
    let start = loop.kernel.now()
    var result: Outcome.Result
    do {
      result = .succeeded(try await part.show(stage))
    } catch {
      result = .failed("\(error)")
    }
    return Outcome(result: result, time: loop.kernel.now().duration(since: start))
  }

  private func table(_ outcomes: [(part: DemoPart, outcome: Outcome)]) -> String {
    var table = Table(columns: [.left, .left, .left, .right])
    table.append(["What", "", "Result", "Time"], style: style.bold)
    for (part, outcome) in outcomes {
      let time = Format.time(outcome.time)
      switch outcome.result {
      case .succeeded(let message): table.append([part.title, "ok", message, time])
      case .failed(let message): table.append([part.title, "FAILED", message, time], style: style.red)
      }
    }
    return table.text
  }
}
