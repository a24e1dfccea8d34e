// A load in a network that may come later. Prints `status N` or `failed CODE`.
//
//   TestHelper connectivity waits URL SECONDS        waits for a network, and prints `waiting` when the wait begins;
//                                                    the whole load may take SECONDS (0: any time)
//   TestHelper connectivity impatient URL SECONDS    does not wait

import Foundation
import Larkspur

/// A delegate that prints `waiting` when a task waits for connectivity.
private final class WaitingDelegate: NSObject, URLSessionTaskDelegate {
  func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) { say("waiting") }
}

private func load(_ url: URL, waits: Bool, seconds: Int) async throws {
  let configuration = URLSessionConfiguration.ephemeral
  configuration.waitsForConnectivity = waits
  configuration.timeoutIntervalForRequest = 5
  if seconds > 0 { configuration.timeoutIntervalForResource = TimeInterval(seconds) }
  let session = URLSession(configuration: configuration, delegate: WaitingDelegate(), delegateQueue: nil)
  do {
    let (_, response) = try await session.data(from: url)
    say("status \((response as? HTTPURLResponse)?.statusCode ?? 0)")
  } catch let error as URLError {
    say("failed \(error.code.rawValue)")
  }
}

func runConnectivity(_ arguments: [String]) async throws {
  guard arguments.count == 3, let url = URL(string: arguments[1]), let seconds = Int(arguments[2]) else {
    throw Failure.wrongArguments
  }
  switch arguments[0] {
  case "waits": try await load(url, waits: true, seconds: seconds)
  case "impatient": try await load(url, waits: false, seconds: seconds)
  default: throw Failure.wrongArguments
  }
}
