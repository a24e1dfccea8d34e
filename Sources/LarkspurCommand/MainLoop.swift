import Glibc
import LarkspurConsole
import LarkspurIO
import LarkspurTransport

/// Runs a task on a loop that ticks on the main thread, where a signal ends each wait and each write that blocks.
enum MainLoop {
  /// Runs `body`, and ends the process with the status that it returns. SIGINT, SIGTERM and SIGHUP cancel the task.
  ///
  /// - Parameter signalsDecide: Whether a signal determines the status, in place of `body`.
  static func run(
    signalsDecide: Bool = true, _ body: @escaping @concurrent @Sendable (ClientLoop) async -> ExitStatus
  ) -> Never {
    let loop: ClientLoop
    do throws(Errno) {
      loop = try ClientLoop(withoutThreadOn: LinuxKernel.shared)
    } catch {
      Console.complain("cannot start: \(error)")
      exit(ExitStatus.outOfResources.rawValue)
    }
    CaughtSignal.catchAll(waking: loop.signalWaker)
    let task = Task(executorPreference: loop) { @concurrent in
      let status = await body(loop)
      let signal = signalsDecide ? CaughtSignal.pending : nil
      exit(signal.map { ExitStatus.signal($0).rawValue } ?? status.rawValue)
    }
    while true {
      loop.tick()
      if CaughtSignal.pending != nil { task.cancel() }
    }
  }
}
