// What background sessions cost, for measurements by hand. The transfer service is that of the environment.
//
//   TestHelper background-bars tasks COUNT STATE        makes the session "bars" with COUNT tasks that wait for a day, if it
//                                                       has none, and prints the times and the memory
//   TestHelper background-bars load KIND URL STATE      loads a file with a session of KIND "background" or "ordinary",
//                                                       and prints the time and the processor's time of this process
//
// STATE is the directory of the journals, or "-" for the one of the environment.

import Foundation
import Glibc
import Larkspur
import LarkspurTestServer
import TestKit

func runBackgroundBars(_ arguments: [String]) async throws {
  switch (arguments.first, arguments.count) {
  case ("tasks", 3):
    guard let count = Int(arguments[1]) else { throw Failure.wrongArguments }
    try await measureTasks(count, arguments[2])
  case ("load", 4):
    guard let url = URL(string: arguments[2]) else { throw Failure.wrongArguments }
    try await measureLoad(url, isBackground: arguments[1] == "background", arguments[3])
  default: throw Failure.wrongArguments
  }
}

private func configuration(_ state: String) -> URLSessionConfiguration {
  let configuration = URLSessionConfiguration.background(withIdentifier: "bars")
  if state != "-" { configuration.transferStateHome = state }
  configuration.sharedContainerIdentifier = "bars"
  return configuration
}

private func milliseconds(since start: ContinuousClock.Instant) -> String {
  let time = ContinuousClock.now - start
  return String(format: "%.1f ms", Double(time.components.attoseconds) / 1e15 + Double(time.components.seconds) * 1e3)
}

private func measureTasks(_ count: Int, _ state: String) async throws {
  let before = Footprint.now().residentKiB
  var start = ContinuousClock.now
  let session = URLSession(configuration: configuration(state), delegate: nil, delegateQueue: nil)
  say("session after \(milliseconds(since: start))")
  var tasks = await session.allTasks
  say("\(tasks.count) tasks after \(milliseconds(since: start))")
  if tasks.isEmpty {
    guard let url = URL(string: "http://127.0.0.1:9/file") else { throw Failure.wrongArguments }
    start = .now
    for _ in 0..<count {
      let task = session.downloadTask(with: url)
      task.earliestBeginDate = Date(timeIntervalSinceNow: 86_400)
      task.resume()
    }
    await session.flush()
    say("made and on the disk after \(milliseconds(since: start))")
  }
  start = .now
  tasks = await session.allTasks
  say("\(tasks.count) tasks in \(milliseconds(since: start))")
  say("memory \(before) KiB before, \(Footprint.now().residentKiB) KiB now")
}

private func measureLoad(_ url: URL, isBackground: Bool, _ state: String) async throws {
  let delegate = LoadingProgram()
  let configuration = isBackground ? configuration(state) : URLSessionConfiguration.ephemeral
  let start = ContinuousClock.now
  let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
  session.downloadTask(with: url).resume()
  session.finishTasksAndInvalidate()
  try await delegate.over.wait()
  var usage = rusage()
  getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
  let (user, system) = (usage.ru_utime, usage.ru_stime)
  let processor = Double(user.tv_sec + system.tv_sec) * 1e3 + Double(user.tv_usec + system.tv_usec) / 1e3
  say("loaded after \(milliseconds(since: start)), processor \(String(format: "%.0f ms", processor))")
}

private final class LoadingProgram: NSObject, URLSessionDownloadDelegate {
  let over = TestServer.Signal()

  func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
    let size = (try? FileManager.default.attributesOfItem(atPath: location.path)[.size] as? NSNumber) ?? 0
    say("\(size) bytes")
    try? FileManager.default.removeItem(at: location)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    if let error { say("\(error)") }
  }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { over.fire() }
}
