// A program with a background session, whose process may be killed at any moment.
//
//   TestHelper background-session STATE FOLDER [KIND URL FILE]...
//
// Makes the session "transfers" with the directory STATE ("-": with the transfer service), and the tasks of the
// arguments that the session has not had: downloads (KIND is "get"; "impatient" for one whose attempts end when no bytes have
// come for a second), and uploads of FILE (KIND is "put"). With "finish" it makes no tasks, and waits for those that there are. A download comes to the file FILE in FOLDER. Each end adds a
// line to FOLDER/ends: "FILE ERROR", where ERROR is 0 or the error's code. FOLDER/history has a line "begun" for each
// process, and further ones for each task, behind the event: "moved FILE", "ended FILE", and "confirmed FILE" when the
// journal has the acknowledgement. Only files that exist get lines.
// Prints a line for each call of the delegate, and exits when the session has no tasks.
//
// Servers whose certificates lead to the root in FOLDER/root are trusted, and others are refused. A server that asks gets
// the client certificate in FOLDER/certificate and FOLDER/key. All three have DER. Without these files the defaults count.

import Foundation
import Larkspur
import LarkspurTestServer

func runBackgroundSession(_ arguments: [String]) async throws {
  guard arguments.count >= 2, arguments.count % 3 == 2 else { throw Failure.wrongArguments }
  let folder = URL(filePath: arguments[1])
  let configuration = URLSessionConfiguration.background(withIdentifier: "transfers")
  // Otherwise the environment decides, and the transfer service carries the tasks out.
  if arguments[0] != "-" { configuration.transferStateHome = arguments[0] }
  configuration.sharedContainerIdentifier = "tests"
  if ProcessInfo.processInfo.environment["SEGMENTED"] == "true" {
    var segments = URLSessionConfiguration.SegmentedDownloads()
    segments.smallestPiece = 100_000
    configuration.segmentedDownloads = segments
  }
  let (confirmations, confirm) = AsyncStream<Void>.makeStream()
  let delegate = BackgroundProgram(folder, confirm)
  delegate.add("begun", to: "history")
  let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
  say("made")
  if arguments.dropFirst(2).first == "finish" {
    session.finishTasksAndInvalidate()
    return try await delegate.over.wait()
  }
  if !FileManager.default.fileExists(atPath: folder.appending(path: "begun").path) {
    // An earlier process may have been killed between two tasks.
    let earlier = await session.allTasks.map(\.taskDescription)
    let ends = ((try? String(contentsOf: folder.appending(path: "ends"), encoding: .utf8)) ?? "").split(separator: "\n")
    for index in stride(from: 2, to: arguments.count, by: 3) {
      let name = arguments[index + 2]
      if earlier.contains(name) || ends.contains(where: { $0.hasPrefix("\(name) ") }) { continue }
      guard let url = URL(string: arguments[index + 1]) else { throw Failure.wrongArguments }
      let task: URLSessionTask
      var request = URLRequest(url: url)
      if arguments[index] == "impatient" { request.timeoutInterval = 1 }
      if arguments[index] != "put" {
        task = session.downloadTask(with: request)
      } else {
        request.httpMethod = "PUT"
        task = session.uploadTask(with: request, fromFile: folder.appending(path: name))
      }
      task.taskDescription = name
      task.resume()
    }
    // Until the tasks are in the journal the program may begin anew.
    await session.flush()
    try Data().write(to: folder.appending(path: "begun"))
  }
  say("begun")
  // A session that has been invalidated ends with its last task, and confirms nothing.
  func isOver() async -> Bool { await session.allTasks.isEmpty && delegate.isConfirmed }
  if await !isOver() {
    for await _ in confirmations where await isOver() { break }
  }
  session.finishTasksAndInvalidate()
  try await delegate.over.wait()
}

private final class BackgroundProgram: NSObject, URLSessionDownloadDelegate, @unchecked Sendable {
  let over = TestServer.Signal()
  private let folder: URL
  private let confirm: AsyncStream<Void>.Continuation
  private let writing = NSLock()
  private var unconfirmed = 0

  init(_ folder: URL, _ confirm: AsyncStream<Void>.Continuation) { (self.folder, self.confirm) = (folder, confirm) }

  /// Whether the journal has the acknowledgements of all ends so far.
  var isConfirmed: Bool { writing.withLock { unconfirmed == 0 } }

  /// Adds a line to a file in the folder, if there is one.
  func add(_ line: String, to name: String) {
    writing.withLock {
      guard let file = FileHandle(forWritingAtPath: folder.appending(path: name).path) else { return }
      _ = try? file.seekToEnd()
      try? file.write(contentsOf: Data("\(line)\n".utf8))
    }
  }

  func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
    say("finished \(downloadTask.taskDescription ?? "")")
    let target = folder.appending(path: downloadTask.taskDescription ?? "")
    try? FileManager.default.removeItem(at: target)
    do { try FileManager.default.moveItem(at: location, to: target) } catch { return say("\(error)") }
    add("moved \(downloadTask.taskDescription ?? "")", to: "history")
  }

  private func file(_ name: String) -> Data? { try? Data(contentsOf: folder.appending(path: name)) }

  func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let space = challenge.protectionSpace
    if let trust = space.serverTrust {
      say("trust \(space.host) \(trust.isTrusted ? "good" : trust.result.message)")
      guard let root = file("root").flatMap({ SecCertificate($0) }) else {
        return completionHandler(.performDefaultHandling, nil)
      }
      SecTrustSetAnchorCertificates(trust, [root])
      let isTrusted = SecTrustEvaluateWithError(trust, nil)
      completionHandler(isTrusted ? .useCredential : .cancelAuthenticationChallenge, URLCredential(trust: trust))
    } else {
      say("certificate \(space.host) of \(space.distinguishedNames?.count ?? -1) issuers")
      guard let certificate = file("certificate"), let key = file("key"),
        let identity = try? ClientIdentity(certificates: certificate, key: key)
      else { return completionHandler(.performDefaultHandling, nil) }
      let credential = URLCredential(identity: identity, certificates: nil, persistence: .none)
      completionHandler(.useCredential, credential)
    }
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    say("wrote \(downloadTask.taskDescription ?? "")")
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let code = (error as? URLError)?.code.rawValue ?? 0
    let name = task.taskDescription ?? ""
    add("\(name) \(code)", to: "ends")
    add("ended \(name)", to: "history")
    say("completed \(name) \(code)")
    writing.withLock { unconfirmed += 1 }
    // The end is acknowledged after this call.
    session.delegateQueue.addOperation { [self] in
      session.flush { [self] in
        add("confirmed \(name)", to: "history")
        writing.withLock { unconfirmed -= 1 }
        confirm.yield()
      }
    }
  }

  func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { say("events") }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { over.fire() }
}
