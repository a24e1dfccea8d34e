import Foundation
import Larkspur
import LarkspurBytes
import LarkspurConsole
import LarkspurIO
import LarkspurTransport

/// `larkspur socket`: opens a WebSocket by the public API of `URLSession` alone, and connects it with standard input
/// and standard output.
///
/// Three tasks share the main thread. One receives: it writes each message before it requests the next, so a slow
/// output slows the server down. One sends the messages of `SocketInput`, and requests the next line when the kernel
/// has taken the message. One sends pings. The first determines the end: it receives up to the server's Close, also
/// after this side has sent its own. A signal therefore cancels none of the tasks, and only sends the Close.
struct Socket {
  /// Maximum size in bytes of a message in either direction, because each is held as a whole.
  static let messageBytesMax = 64 << 20

  private let options: SocketOptions
  private let loop: ClientLoop
  private let start: Deadline
  private let log: SessionLog?

  init(_ options: SocketOptions, on loop: ClientLoop) {
    self.options = options
    self.loop = loop
    start = loop.kernel.now()
    options.request.mute()
    log = options.request.isVerbose ? SessionLog(on: loop.kernel) : nil
  }

  private var deadline: Deadline { options.request.maxTime.map { start.advanced(by: $0) } ?? .never }

  func run() async -> ExitStatus {
    let transfer = SocketTransfer(log)
    let conversation = Task(executorPreference: loop) { @concurrent in await converse(by: transfer) }
    return await withTaskCancellationHandler {
      await conversation.value
    } onCancel: {
      transfer.interrupt()
    }
  }

  private func converse(by transfer: SocketTransfer) async -> ExitStatus {
    do throws(CommandFailure) {
      let target = try SocketURL.parse(options.request.url)
      let settings = try SessionSetUp(options.request, for: target)
      var request = try request(to: target)
      settings.addCookies(to: &request)
      let output = try FileOutput(path: nil, deadline: deadline)
      let input = SocketInput()
      CaughtSignal.interruptCalls(at: deadline)
      try input.start(isBinary: options.isBinary)
      let task = transfer.start(request, settings.configuration, options)
      let failure = await exchange(over: task, of: transfer, from: input, to: output)
      guard let end = await transfer.end() else { throw CommandFailure(.defect) }
      if let failure { throw failure }
      let isLate = deadline != .never && loop.kernel.now() >= deadline
      try SocketOutcome.check(end, at: request.url, settings, isLate: isLate)
      return .success
    } catch {
      // The signal has closed the WebSocket, but not in order.
      if let signal = CaughtSignal.pending { return .signal(signal) }
      return error.report()
    }
  }

  private func request(to target: RequestURL) throws(CommandFailure) -> URLRequest {
    var request = try GetRequest(options.request, to: target).request(to: target, options.request)
    request.url = URL(string: SocketURL.uri(of: target))
    for name in options.protocols { request.addValue(name, forHTTPHeaderField: "Sec-WebSocket-Protocol") }
    return request
  }

  // MARK: - Messages

  /// Sends and receives until the WebSocket has ended.
  ///
  /// - Returns: The failure of this side, if there is one.
  private func exchange(
    over task: URLSessionWebSocketTask, of transfer: SocketTransfer, from input: SocketInput, to output: FileOutput
  ) async -> CommandFailure? {
    await withTaskGroup(of: CommandFailure?.self) { group in
      group.addTask { await send(input, over: task, of: transfer) }
      if let interval = options.pingInterval {
        group.addTask {
          await sendPings(over: task, every: interval)
          return nil
        }
      }
      var failure = await receive(from: task, of: transfer, to: output)
      group.cancelAll()
      for await failureOfTask in group where failure == nil { failure = failureOfTask }
      return failure
    }
  }

  private func receive(
    from task: URLSessionWebSocketTask, of transfer: SocketTransfer, to output: FileOutput
  ) async -> CommandFailure? {
    var failure: CommandFailure?
    do {
      for try await message in task.messages {
        log?.write("received", message)
        // Without an output, messages are only read because the server's Close is behind them.
        guard failure == nil else { continue }
        do throws(CommandFailure) {
          try output.write(Self.bytes(of: message).span)
        } catch {
          failure = error
          transfer.close(.goingAway)
        }
      }
    } catch {
      // The end of the transfer has the reason.
    }
    return failure
  }

  private static func bytes(of message: URLSessionWebSocketTask.Message) -> [UInt8] {
    let isTerminal = OpenFile.standardOutput.isTerminal
    switch message {
    case .string(let text): return Array(((isTerminal ? Format.visible(text.utf8) : text) + "\n").utf8)
    case .data(let data): return isTerminal ? Array(Format.hexadecimal(data).utf8) : Array(data)
    }
  }

  private func send(
    _ input: SocketInput, over task: URLSessionWebSocketTask, of transfer: SocketTransfer
  ) async -> CommandFailure? {
    for await event in input.events {
      switch event {
      case .message(let message):
        do {
          try await task.send(message)
        } catch {
          // The end of the transfer has the reason.
          return nil
        }
        log?.write("sent", message)
        input.messageIsTaken()
      case .ended: transfer.close(.normalClosure)
      case .failed(let failure):
        transfer.close(.goingAway)
        return failure
      }
    }
    return nil
  }

  /// Sends a ping after each interval, once the pong of the previous ping has arrived. The task itself fails if a pong
  /// is late.
  private func sendPings(over task: URLSessionWebSocketTask, every interval: Duration) async {
    do {
      while true {
        try await Task.sleep(for: interval)
        let sent = loop.kernel.now()
        log?.write("sending a ping")
        try await task.sendPing()
        log?.write("received its pong after \(Format.time(loop.kernel.now().duration(since: sent)))")
      }
    } catch {
      // The WebSocket has ended.
    }
  }
}
