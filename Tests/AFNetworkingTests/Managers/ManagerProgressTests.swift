import AFNetworking
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Tests the progress of tasks, and the control of tasks by their progress.
@Suite struct ManagerProgressTests {
  let fixture: ManagerFixture
  var manager: AFHTTPSessionManager { fixture.manager }
  let payload = String(repeating: "AFNetworking", count: 2000)

  init() throws {
    fixture = try ManagerFixture()
    fixture.manager.responseSerializer = AFHTTPResponseSerializer()
  }

  /// Records the fractions that a progress block gets.
  private final class Fractions: Sendable {
    private let values = Mutex<[Double]>([])

    var all: [Double] { values.withLock { $0 } }

    var block: (Progress) -> Void { { progress in self.values.withLock { $0.append(progress.fractionCompleted) } } }
  }

  private func check(_ fractions: Fractions, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(fractions.all.last == 1, sourceLocation: sourceLocation)
    #expect(fractions.all == fractions.all.sorted(), sourceLocation: sourceLocation)
  }

  @Test func ofAGet() async {
    let fractions = Fractions()
    _ = await outcome {
      manager.get(
        "bytes/300000", parameters: nil, headers: nil, progress: fractions.block, success: $0, failure: $1)
    }
    check(fractions)
  }

  @Test func ofAPost() async {
    let fractions = Fractions()
    _ = await outcome {
      manager.post(
        "post", parameters: ["text": payload], headers: nil, progress: fractions.block, success: $0, failure: $1)
    }
    check(fractions)
  }

  @Test func ofAStreamedPost() async {
    let fractions = Fractions()
    let outcome = await outcome {
      manager.post(
        "post", parameters: nil, headers: nil,
        constructingBodyWith: {
          $0.appendPart(
            withFileData: Data(payload.utf8), name: "AFNetworking", fileName: "AFNetworking", mimeType: "text/html")
        }, progress: fractions.block, success: $0, failure: $1)
    }
    #expect(outcome.error == nil)
    check(fractions)
  }

  @Test func ofADataTask() async throws {
    let fractions = Fractions()
    let request = try fixture.request("/bytes/300000")
    _ = await outcome {
      manager.dataTask(
        with: request, uploadProgress: nil, downloadProgress: fractions.block, completionHandler: $0
      ).resume()
    }
    check(fractions)
  }

  /// The length is unknown until the end.
  @Test func ofContentOfUnknownLength() async {
    let fractions = Fractions()
    _ = await outcome {
      manager.get(
        "chunked/300000", parameters: nil, headers: nil, progress: fractions.block, success: $0, failure: $1)
    }
    #expect(fractions.all.last == 1)
  }

  @Test func ofADownload() async throws {
    let fractions = Fractions()
    let request = try fixture.request("/bytes/300000")
    _ = await outcome { receive in
      manager.downloadTask(
        with: request, progress: fractions.block, destination: nil, completionHandler: { receive($0, $1, $2) }
      ).resume()
    }
    check(fractions)
  }

  @Test func ofAnUpload() async throws {
    let (fractions, directory) = (Fractions(), try TemporaryDirectory())
    var request = try fixture.request("/post")
    request.httpMethod = "POST"
    let body = Data(payload.utf8)
    _ = await outcome {
      manager.uploadTask(with: request, from: body, progress: fractions.block, completionHandler: $0).resume()
    }
    check(fractions)

    let file = directory.file("body")
    try body.write(to: file)
    let other = Fractions()
    let outcome = await outcome {
      manager.uploadTask(with: request, fromFile: file, progress: other.block, completionHandler: $0).resume()
    }
    check(other)
    #expect(try #require(outcome.object as? Data).count > body.count)
  }

  /// A progress object that the program requests before or during a load follows its task.
  @Test func objectsFollowTheirTask() async throws {
    let request = try fixture.request("/bytes/300000")
    let journal = Journal()
    let task = manager.dataTask(with: request) { _, _, _ in journal.note("end") }
    let progress = try #require(manager.downloadProgress(for: task))
    #expect(progress.isCancellable && progress.isPausable && progress.totalUnitCount == -1)
    #expect(manager.downloadProgress(for: task) === progress)
    #expect(manager.uploadProgress(for: task) !== progress)
    task.resume()
    await journal.wait(for: "end")
    #expect(progress.completedUnitCount == 300_000 && progress.totalUnitCount == 300_000 && progress.isFinished)
    #expect(manager.downloadProgress(for: task) == nil)
    #expect(manager.uploadProgress(for: URLSession.shared.dataTask(with: request)) == nil)
  }

  @Test func theUploadsObject() async throws {
    var request = try fixture.request("/post")
    request.httpMethod = "POST"
    let journal = Journal()
    let task = manager.uploadTask(with: request, from: Data(payload.utf8)) { _, _, _ in journal.note("end") }
    let progress = try #require(manager.uploadProgress(for: task))
    task.resume()
    await journal.wait(for: "end")
    #expect(progress.completedUnitCount == 24_000 && progress.isFinished)
  }

  @Test func cancellingTheObjectCancelsTheTask() async throws {
    let signal = TestServer.Signal()
    fixture.server.route("GET", "/slow", script: [.wait(signal), .close])
    let request = try fixture.request("/slow")
    let outcome = await outcome { receive in
      let task = manager.dataTask(with: request, completionHandler: receive)
      let progress = manager.downloadProgress(for: task)
      task.resume()
      progress?.cancel()
    }
    signal.fire()
    #expect(outcome.error?.code == NSURLErrorCancelled)
  }

  @Test func pausingTheObjectSuspendsTheTask() async throws {
    let journal = Journal()
    let signal = TestServer.Signal()
    fixture.server.route("GET", "/slow", script: [.wait(signal), .respond(.text("slow")), .close])
    let slow = try fixture.request("/slow")
    let task = manager.dataTask(with: slow) { _, _, _ in journal.note("end") }
    let observers = [
      Notified(.AFNetworkingTaskDidResume, of: task) { _ in journal.note("resume") },
      Notified(.AFNetworkingTaskDidSuspend, of: task) { _ in journal.note("suspend") },
    ]
    let progress = try #require(manager.uploadProgress(for: task))
    task.resume()
    progress.pause()
    await journal.wait(for: "suspend")
    progress.resume()
    // Progress objects call their handlers later, on another queue.
    await journal.wait { $0.count == 3 }
    signal.fire()
    await journal.wait(for: "end")
    #expect(journal.lines == ["resume", "suspend", "resume", "end"])
    withExtendedLifetime(observers) {}
  }
}
