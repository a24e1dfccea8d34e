import Dispatch
import Foundation
import Larkspur
import LarkspurIO
import Synchronization

/// The downloads of `larkspur get --background`: one background session of this user. The description of a task is the
/// path of its file.
struct BackgroundDownloads {
  private static let identifier = "larkspur-get"

  /// Adds a download. Returns when the journal has it, or, without a service, when all are complete.
  func add(_ options: GetOptions) -> ExitStatus {
    guard let output = options.output else { return .usage }
    let request: URLRequest
    do throws(CommandFailure) {
      request = try self.request(options)
    } catch {
      if let message = error.message { Console.complain(message) }
      return error.status
    }
    let (session, files) = open()
    let task = session.downloadTask(with: request)
    task.taskDescription = URL(fileURLWithPath: output).standardizedFileURL.path
    task.resume()
    let isWritten = DispatchSemaphore(value: 0)
    session.flush { isWritten.signal() }
    isWritten.wait()
    if let error = task.error {
      Console.complain(error.localizedDescription)
      return .transfersFailed
    }
    guard session.isServed else {
      Console.complain("no transfer service: this command carries the download out itself")
      return end(session, files)
    }
    Console.print("in the background: task \(task.taskIdentifier) of \(Self.identifier)\n")
    return .success
  }

  private func request(_ options: GetOptions) throws(CommandFailure) -> URLRequest {
    let url: RequestURL
    do throws(RequestURL.Invalid) {
      url = try RequestURL(options.url)
    } catch {
      throw CommandFailure(.malformedURL, "\(error)")
    }
    guard let parsed = URL(string: url.uri) else { throw CommandFailure(.malformedURL, "malformed URL") }
    guard url.credentials == nil else {
      throw CommandFailure(.usage, "--background keeps no password: use -H Authorization")
    }
    var request = URLRequest(url: parsed)
    for field in options.fields { request.setValue(field.value, forHTTPHeaderField: field.name) }
    return request
  }

  /// Moves the files of complete downloads to their places, and waits for the others.
  func deliver() -> ExitStatus {
    let (session, files) = open()
    return end(session, files)
  }

  private func open() -> (URLSession, FileMover) {
    let configuration = URLSessionConfiguration.background(withIdentifier: Self.identifier)
    if let own = try? FilePaths.resolved("/proc/self/exe") {
      configuration.launchCommand = [own, "transfers", "deliver"]
    }
    let files = FileMover()
    return (URLSession(configuration: configuration, delegate: files, delegateQueue: nil), files)
  }

  private func end(_ session: URLSession, _ files: FileMover) -> ExitStatus {
    session.finishTasksAndInvalidate()
    files.isOver.wait()
    return files.hasFailed ? .transfersFailed : .success
  }
}

/// The delegate that moves each file to the path in its task's description.
private final class FileMover: NSObject, URLSessionDownloadDelegate, Sendable {
  let isOver = DispatchSemaphore(value: 0)
  private let failed = Mutex<Set<Int>>([])

  var hasFailed: Bool { failed.withLock { !$0.isEmpty } }

  private func complain(_ task: URLSessionTask, _ message: String) {
    failed.withLock { _ = $0.insert(task.taskIdentifier) }
    Console.complain("\(task.taskDescription ?? "task \(task.taskIdentifier)"): \(message)")
  }

  func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
    guard let path = downloadTask.taskDescription else { return complain(downloadTask, "the file has no place") }
    let status = (downloadTask.response as? HTTPURLResponse)?.statusCode ?? 0
    guard (200..<300).contains(status) else { return complain(downloadTask, "the server answers \(status)") }
    do {
      // The directory may be on another file system. What is at the path stays until all bytes are there.
      let part = URL(fileURLWithPath: path + ".\(UUID().uuidString).part")
      try FileManager.default.moveItem(at: location, to: part)
      do {
        try FilePaths.rename(part.path, to: path)
      } catch {
        try? FileManager.default.removeItem(at: part)
        throw error
      }
      Console.print("\(path)\n")
    } catch {
      complain(downloadTask, "\(error)")
    }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    if let error { complain(task, error.localizedDescription) }
  }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { isOver.signal() }
}
