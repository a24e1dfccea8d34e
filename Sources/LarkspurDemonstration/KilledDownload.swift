import Foundation
import Larkspur
import LarkspurConsole
import LarkspurHTTP
import LarkspurIO
import LarkspurTestServer
import LarkspurTransfers

extension DemoPart {
  /// A download whose program is killed at 40 %. The next start has the file.
  static let killedDownload = DemoPart("A download whose program is killed at 40 %") { stage in
    let count = 16 << 20
    let cut = count * 2 / 5
    let killed = TestServer.Signal()
    stage.serveHeldBack("/film", count: count, cut: cut, until: killed)

    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("larkspur-demo-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appendingPathComponent("film")

    let program = KilledProgram(url: try stage.url("/film"), file: file)
    let first = try program.start(in: folder)
    stage.say("GET /film (\(Format.bytes(count))), in a background session without a service")
    let session = TransferSession(
      identifier: KilledProgram.session,
      directory: TransferLocation.directory(
        stateHome: folder.path, program: ProcessInfo.processInfo.processName, session: KilledProgram.session),
      settings: [])
    var isRecorded = false
    while !isRecorded, first.isRunning {
      try await Task.sleep(for: .milliseconds(20))
      let records = (try? TransferJournalReader.content(of: session))?.records ?? []
      isRecorded = records.first?.resumePoint?.offset == cut
    }
    kill(first.processIdentifier, SIGKILL)
    first.waitUntilExit()
    killed.fire()
    stage.say("killed with SIGKILL; the journal has \(Format.bytes(cut))")
    try DemoFailure.unless(isRecorded, "the program has ended by itself")

    let next = try program.start(in: folder)
    next.waitUntilExit()
    let range = stage.server.requests.last?.fields["Range"] ?? "(missing)"
    stage.say("started again: GET /film, Range: \(range)")
    let checksum = try checksum(of: file)
    try DemoFailure.unless(next.terminationStatus == 0, "the second program fails with \(next.terminationStatus)")
    try DemoFailure.unless(range == "bytes=\(cut)-", "the range begins elsewhere: \(range)")
    try DemoFailure.unless(checksum == TestServer.contentChecksum(count: count), "the checksums differ")
    return "the next start went on at \(Format.bytes(cut)), checksum \(checksum) is right"
  }
}

/// The program that is killed: downloads a file in a background session, or continues the download that the session has
/// already.
final class KilledProgram: NSObject, URLSessionDownloadDelegate, Sendable {
  static let session = "film"
  private static let option = "--download"

  private let url: URL
  private let file: URL

  init(url: URL, file: URL) {
    self.url = url
    self.file = file
  }

  /// - Returns: `nil` unless the command line is that of `start`.
  convenience init?(_ arguments: ArraySlice<String>) {
    guard arguments.count == 3, arguments.first == Self.option,
      let url = arguments.dropFirst().first.flatMap({ URL(string: $0) }), let file = arguments.last
    else { return nil }
    self.init(url: url, file: URL(fileURLWithPath: file))
  }

  /// Starts this program again, with a directory for its state and without a service.
  func start(in folder: URL) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: try FilePaths.resolved("/proc/self/exe"))
    process.arguments = [Self.option, url.absoluteString, file.path]
    process.environment = ProcessInfo.processInfo.environment.merging([
      "XDG_STATE_HOME": folder.path, "LARKSPUR_TRANSFER_SERVICE": "",
    ]) { $1 }
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    return process
  }

  /// Downloads the file, and exits.
  func run() -> Never {
    let configuration = URLSessionConfiguration.background(withIdentifier: Self.session)
    // If the demonstration is interrupted, its server is gone.
    configuration.timeoutIntervalForResource = 60
    let session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
    session.getAllTasks { [url] tasks in
      if tasks.isEmpty { session.downloadTask(with: url).resume() }
      session.finishTasksAndInvalidate()
    }
    while true { _ = pause() }
  }

  func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
    try? FileManager.default.moveItem(at: location, to: file)
  }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    exit(FileManager.default.fileExists(atPath: file.path) ? EXIT_SUCCESS : EXIT_FAILURE)
  }
}
