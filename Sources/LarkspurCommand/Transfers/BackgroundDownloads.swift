import Dispatch
import Foundation
import Larkspur
import LarkspurConsole
import LarkspurHTTP
import LarkspurIO
import LarkspurTransfers
import Synchronization

/// The downloads of `larkspur get --background`: one background session of this user. The description of a task is the
/// path of its file.
struct BackgroundDownloads {
  private static let identifier = "larkspur-get"
  /// The time limit in seconds for the journal to accept a download, and for another command to release the session.
  private static let patience = 10.0
  private static let pause = 0.05

  /// Adds a download. Returns when the journal has it, or, without a service, when all are complete.
  func add(_ options: GetOptions) -> ExitStatus {
    do throws(CommandFailure) {
      return try begin(options)
    } catch {
      return error.report()
    }
  }

  private func begin(_ options: GetOptions) throws(CommandFailure) -> ExitStatus {
    let (session, files, task) = begin(try request(options), try place(of: options.output ?? ""))
    let isWritten = DispatchSemaphore(value: 0)
    session.flush {
      // Behind the calls for a task that could not be written.
      session.delegateQueue.addOperation { isWritten.signal() }
    }
    guard isWritten.wait(timeout: .now() + Self.patience) == .success else {
      throw CommandFailure(.transfersFailed, "the transfer service does not confirm the download")
    }
    // The delegate has printed each end that it received. A small file may be there already.
    if files.hasFailed { return .transfersFailed }
    if let error = task.error { throw CommandFailure(.transfersFailed, error.localizedDescription) }
    guard session.isServed else {
      Console.complain("no transfer service: this command carries the download out itself")
      return end(session, files)
    }
    Console.print("in the background: task \(task.taskIdentifier) of \(Self.identifier)\n")
    return .success
  }

  private func place(of output: String) throws(CommandFailure) -> DeliveryPlace {
    do {
      // The file comes when this command has ended: nothing reads it from a pipe then.
      return try DeliveryPlace(DeliveryPlace.path(of: output))
    } catch {
      let reason =
        error is DirectoryRefusal ? "cannot deliver to this directory" : "writes regular files only: \(output)"
      throw CommandFailure(.writeFailed, "--background \(reason): \(error)")
    }
  }

  /// Begins the download. Another command that has the session is waited for.
  private func begin(
    _ request: URLRequest, _ place: DeliveryPlace
  ) -> (URLSession, FileMover, URLSessionDownloadTask) {
    let end = DispatchTime.now() + Self.patience
    while true {
      let (session, files) = open(place)
      // The identifiers of earlier tasks are known when the session has its runner.
      _ = session.presentTasks
      let task = session.downloadTask(with: request)
      task.taskDescription = place.path
      // A task of a session that another command has ends at once, on the delegate's queue.
      let isLast = DispatchTime.now() >= end
      files.toleratesUse = !isLast
      task.resume()
      let isOpen = DispatchSemaphore(value: 0)
      session.getAllTasks { _ in isOpen.signal() }
      isOpen.wait()
      let isInUse = (task.error as? URLError)?.code == .backgroundSessionInUseByAnotherProcess
      if !isInUse || isLast { return (session, files, task) }
      session.invalidateAndCancel()
      files.isOver.wait()
      _ = DispatchSemaphore(value: 0).wait(timeout: .now() + Self.pause)
    }
  }

  private func request(_ options: GetOptions) throws(CommandFailure) -> URLRequest {
    let url = try RequestURL.parse(options.url)
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

  private func open(_ place: DeliveryPlace? = nil) -> (URLSession, FileMover) {
    let configuration = URLSessionConfiguration.background(withIdentifier: Self.identifier)
    if let own = try? FilePaths.resolved("/proc/self/exe") {
      configuration.launchCommand = [own, "transfers", "deliver"]
    }
    let files = FileMover(place)
    return (URLSession(configuration: configuration, delegate: files, delegateQueue: nil), files)
  }

  private func end(_ session: URLSession, _ files: FileMover) -> ExitStatus {
    session.finishTasksAndInvalidate()
    files.isOver.wait()
    return files.hasFailed ? .transfersFailed : .success
  }
}

/// The delegate that moves each file to the path in its task's description.
///
/// A program that the service has started has no terminal: what goes wrong is in the service's log, too.
private final class FileMover: NSObject, URLSessionDownloadDelegate, Sendable {
  let isOver = DispatchSemaphore(value: 0)
  private let failed = Mutex<Set<Int>>([])
  private let tolerance = Atomic(false)
  private let log: ServiceLog?
  /// The place of this command's download, whose directory stays open until its file arrives.
  private let place: DeliveryPlace?

  init(_ place: DeliveryPlace?) {
    self.place = place
    let isLaunched = EnvironmentVariable.value(of: ServiceLauncher.sessionVariable) != nil
    log = isLaunched ? TransferLocation.stateHome().flatMap { try? ServiceLog(directory: $0 + "/larkspur") } : nil
  }

  /// Whether the session may be another command's.
  var toleratesUse: Bool {
    get { tolerance.load(ordering: .relaxed) }
    set { tolerance.store(newValue, ordering: .relaxed) }
  }

  var hasFailed: Bool { failed.withLock { !$0.isEmpty } }

  private func complain(_ task: URLSessionTask, _ message: String) {
    failed.withLock { _ = $0.insert(task.taskIdentifier) }
    let line = "\(task.taskDescription ?? "task \(task.taskIdentifier)"): \(message)"
    Console.complain(line)
    log?.add("larkspur get: \(line)")
  }

  /// Keeps a file that cannot be moved to its place: its download is over.
  ///
  /// - Returns: Where the file is.
  private func keep(_ file: URL) throws -> String {
    guard let home = TransferLocation.stateHome() else { throw CocoaError(.fileNoSuchFile) }
    let folder = URL(fileURLWithPath: home + "/larkspur/undelivered")
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let place = folder.appending(path: UUID().uuidString)
    try FileManager.default.moveItem(at: file, to: place)
    return place.path
  }

  func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
    guard let path = downloadTask.taskDescription else { return complain(downloadTask, "the file has no place") }
    let status = (downloadTask.response as? HTTPURLResponse)?.statusCode ?? 0
    guard (200..<300).contains(status) else { return complain(downloadTask, "the server answers \(status)") }
    do {
      let place = if let place, place.path == path { place } else { try DeliveryPlace(path) }
      try place.take(location.path)
      Console.print("\(path)\n")
    } catch {
      let words = (try? keep(location)).map { "the content is in \($0)" } ?? "the content is lost"
      complain(downloadTask, "cannot be written (\(error)): \(words)")
    }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    guard let error else { return }
    if toleratesUse, (error as? URLError)?.code == .backgroundSessionInUseByAnotherProcess { return }
    complain(task, error.localizedDescription)
  }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { isOver.signal() }
}
