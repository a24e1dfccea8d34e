import Foundation
import Larkspur
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

    let url = try stage.url("/film").absoluteString
    let first = try program(["get", "--background", "-o", file.path, url], folder)
    stage.say("larkspur get --background -o film (\(Format.bytes(count))), without a service")
    let session = TransferSession(
      identifier: "larkspur-get",
      directory: TransferLocation.directory(
        stateHome: folder.path, program: ProcessInfo.processInfo.processName, session: "larkspur-get"), settings: [])
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

    let next = try program(["transfers", "deliver"], folder)
    next.waitUntilExit()
    let range = stage.server.requests.last?.fields["Range"] ?? "(missing)"
    stage.say("larkspur transfers deliver: GET /film, Range: \(range)")
    let checksum = try checksum(of: file)
    try DemoFailure.unless(next.terminationStatus == 0, "the second program fails with \(next.terminationStatus)")
    try DemoFailure.unless(range == "bytes=\(cut)-", "the range begins elsewhere: \(range)")
    try DemoFailure.unless(checksum == TestServer.contentChecksum(count: count), "the checksums differ")
    return "the next start went on at \(Format.bytes(cut)), checksum \(checksum) is right"
  }

  /// Starts this program again, with a directory for its state and without a service.
  private static func program(_ arguments: [String], _ folder: URL) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: try FilePaths.resolved("/proc/self/exe"))
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging([
      "XDG_STATE_HOME": folder.path, "LARKSPUR_TRANSFER_SERVICE": "",
    ]) { $1 }
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    return process
  }
}
