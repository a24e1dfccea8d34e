import Glibc
import LarkspurConsole
import LarkspurIO

/// The command `larkspur`: reads the command line and runs the command that it names.
@main
enum LarkspurCommand {
  /// There is no release yet, and so no number.
  static let version = "unreleased"

  static func main() {
    // With SIGPIPE ignored, a reader that goes away causes an error of a write, and the command still cleans up.
    CaughtSignal.ignoreBrokenPipes()
    do throws(UsageError) {
      switch try Invocation(parsing: CommandLine.arguments.dropFirst(), configuration: GetOptions.configuration) {
      case .get(let options) where options.isInBackground: exit(BackgroundDownloads().add(options).rawValue)
      case .get(let options): MainLoop.run { await GetEach(options: options, loop: $0).run() }
      // A signal closes the WebSocket, and the server's Close determines the status.
      case .socket(let options): MainLoop.run(signalsDecide: false) { await Socket(options, on: $0).run() }
      case .events(let options): MainLoop.run { await Events(options, on: $0).run() }
      case .pins(let options): MainLoop.run { await Pins(options, on: $0).run() }
      case .check(let options): exit(Check(options).run().rawValue)
      case .transfers(let options): exit(Transfers(options).run().rawValue)
      case .completions(let options): exit(Completions(options).run().rawValue)
      case .help(let topic): Console.print(topic.text)
      case .version: Console.print("larkspur \(version)\n")
      }
      exit(ExitStatus.success.rawValue)
    } catch {
      Console.note(
        "larkspur: \(error)", "See: larkspur help\(error.topic == .overview ? "" : " \(error.topic.rawValue)")")
      exit(ExitStatus.usage.rawValue)
    }
  }
}
