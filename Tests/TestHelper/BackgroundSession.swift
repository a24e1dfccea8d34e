// A program with a background session, whose process may be killed at any moment.
//
//   TestHelper background-session STATE FOLDER [KIND URL FILE]...
//
// Makes the session "transfers" with the directory STATE ("-": with the transfer service), and the tasks of the
// arguments if the session has none: downloads (KIND is "get"; "impatient" for one whose attempts end when no bytes have
// come for a second), and uploads of FILE (KIND is "put"). A download comes to the file FILE in FOLDER. Each end adds a
// line to FOLDER/ends: "FILE ERROR", where ERROR is 0 or the error's code.
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
  let delegate = BackgroundProgram(folder)
  let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
  if await session.allTasks.isEmpty, !FileManager.default.fileExists(atPath: folder.appending(path: "begun").path) {
    for index in stride(from: 2, to: arguments.count, by: 3) {
      guard let url = URL(string: arguments[index + 1]) else { throw Failure.wrongArguments }
      let task: URLSessionTask
      var request = URLRequest(url: url)
      if arguments[index] == "impatient" { request.timeoutInterval = 1 }
      if arguments[index] != "put" {
        task = session.downloadTask(with: request)
      } else {
        request.httpMethod = "PUT"
        task = session.uploadTask(with: request, fromFile: folder.appending(path: arguments[index + 2]))
      }
      task.taskDescription = arguments[index + 2]
      task.resume()
    }
    // Until the tasks are in the journal the program may begin anew.
    await session.flush()
    try Data().write(to: folder.appending(path: "begun"))
  }
  say("begun")
  session.finishTasksAndInvalidate()
  try await delegate.over.wait()
}

private final class BackgroundProgram: NSObject, URLSessionDownloadDelegate, @unchecked Sendable {
  let over = TestServer.Signal()
  private let folder: URL

  init(_ folder: URL) { self.folder = folder }

  func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
    say("finished \(downloadTask.taskDescription ?? "")")
    let target = folder.appending(path: downloadTask.taskDescription ?? "")
    try? FileManager.default.removeItem(at: target)
    do { try FileManager.default.moveItem(at: location, to: target) } catch { say("\(error)") }
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
    let ends = folder.appending(path: "ends")
    if let file = FileHandle(forWritingAtPath: ends.path) {
      _ = try? file.seekToEnd()
      try? file.write(contentsOf: Data("\(task.taskDescription ?? "") \(code)\n".utf8))
    }
    say("completed \(task.taskDescription ?? "") \(code)")
  }

  func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { say("events") }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { over.fire() }
}
