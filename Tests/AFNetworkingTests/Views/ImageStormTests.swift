import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import AFNetworking

/// Many requests, cancellations and reused views at a time.
@Suite(.timeLimit(.minutes(2))) struct ImageStormTests {
  /// A cell of a list, which is used on one thread.
  final class Cell: AFImageTarget {
    var image: Picture?
    var wanted = ""
    let imageSlot: AFImageSlot
    init(_ fixture: ImageFixture) { imageSlot = AFImageSlot(downloader: fixture.downloader) }
  }

  /// The thread of the views: a queue of work that the test runs.
  final class MainLoop: Sendable {
    private let work = Mutex<[@Sendable () -> Void]>([])
    let scheduled = Event()
    var scheduler: AFViewScheduler {
      AFViewScheduler { [self] body in
        work.withLock { $0.append(body) }
        scheduled.fire()
      }
    }

    func run() { for body in work.withLock({ exchange(&$0, with: []) }) { body() } }
  }

  /// A list of 40 cells scrolls over 2,000 rows with 60 images: each cell shows what it wanted last, and each image has
  /// been requested once.
  @Test func aListThatScrolls() async throws {
    let loop = MainLoop()
    let fixture = try ImageFixture(activeMax: 8, .LIFO, scheduler: loop.scheduler)
    let urls = try (0..<60).map { try #require(try fixture.request("/image/\($0)").url) }
    // A request of low priority keeps each download alive, so that no cancellation ends it.
    var options = AFImageDownloadOptions()
    options.priority = .low
    for url in urls { fixture.downloader.downloadImage(for: .image(url), options: options) }
    let cells = (0..<40).map { _ in Cell(fixture) }
    var random = SeededGenerator(seed: 2000)
    for row in 0..<2000 {
      let cell = cells[row % cells.count]
      let name = Int.random(in: 0..<60, using: &random)
      cell.wanted = "\(name)"
      cell.setImageWith(urls[name])
      if row.isMultiple(of: 7) { cells[Int.random(in: 0..<40, using: &random)].cancelImageDownloadTask() }
      if row.isMultiple(of: 3) { loop.run() }
    }
    for cell in cells { cell.setImageWith(urls[Int(cell.wanted) ?? 0]) }
    await Wait.until("no image is loading") {
      loop.run()
      return fixture.downloader.downloadCount == 0 && !cells.contains { $0.imageSlot.isLoading }
    }
    for cell in cells { #expect(cell.image?.name == cell.wanted) }
    #expect(fixture.requestCounts.count == 60 && fixture.requestCounts.values.allSatisfy { $0 == 1 })
  }

  /// The answers to each request.
  final class Answers: Sendable {
    private let answers = Mutex<[Int: [String]]>([:])
    let noted = Event()

    var all: [Int: [String]] { answers.withLock { $0 } }

    func note(_ answer: String, _ request: Int) {
      answers.withLock { $0[request, default: []].append(answer) }
      noted.fire()
    }
  }

  /// 2,000 requests from several threads for 50 images, a third of which are cancelled: each request has one answer, and
  /// each image is on the wire once.
  @Test func requestsFromManyThreads() async throws {
    let fixture = try ImageFixture(activeMax: 6, scheduler: AFViewScheduler { $0() })
    // A request of its own keeps each download alive, so that no cancellation ends it.
    let downloader = fixture.downloader
    let anchors = try (0..<50).map { number in
      let request = try fixture.request("/image/\(number)")
      return Task { await downloader.download(request) }
    }
    let requests = try (0..<50).map { try fixture.request("/image/\($0)") }
    let answers = Answers()
    await withTaskGroup(of: Void.self) { group in
      for worker in 0..<8 {
        group.addTask {
          var random = SeededGenerator(seed: UInt64(worker))
          for step in 0..<250 {
            let identifier = worker * 250 + step
            let name = Int.random(in: 0..<50, using: &random)
            let receipt = downloader.downloadImage(for: requests[name]) { _, _, image in
              let isRight = (image as? Picture)?.name == "\(name)"
              answers.note(isRight ? "image" : "wrong", identifier)
            } failure: { _, _, error in
              answers.note("\((error as NSError).code)", identifier)
            }
            if step.isMultiple(of: 3), let receipt { downloader.cancelTask(for: receipt) }
          }
        }
      }
    }
    for anchor in anchors { #expect(await anchor.value.image != nil) }
    await Wait.until("no download runs") { downloader.downloadCount == 0 }
    try await answers.noted.wait(for: 2000)
    let all = answers.all
    #expect(all.count == 2000)
    #expect(all.values.allSatisfy { $0 == ["image"] || $0 == ["\(NSURLErrorCancelled)"] })
    #expect(fixture.requestCounts.count == 50 && fixture.requestCounts.values.allSatisfy { $0 == 1 })
  }
}
