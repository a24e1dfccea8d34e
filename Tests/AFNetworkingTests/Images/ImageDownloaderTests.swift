import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import AFNetworking

/// What AFNetworking's own tests of the image downloader leave open, and the downloader's additions.
@Suite(.timeLimit(.minutes(1))) struct ImageDownloaderTests {
  let fixture: ImageFixture
  var downloader: AFImageDownloader { fixture.downloader }

  init() throws { fixture = try ImageFixture() }

  // MARK: - Creation

  @Test func defaults() {
    #expect(AFImageDownloader.defaultInstance() === AFImageDownloader.defaultInstance())
    let configuration = AFImageDownloader.defaultURLSessionConfiguration()
    #expect(configuration.urlCache === AFImageDownloader.defaultURLCache())
    #expect(configuration.urlCache?.memoryCapacity == 20 << 20 && configuration.urlCache?.diskCapacity == 150 << 20)
    #expect(configuration.timeoutIntervalForRequest == 60 && configuration.httpShouldSetCookies)
    #expect(configuration.requestCachePolicy == .useProtocolCachePolicy && !configuration.httpShouldUsePipelining)
    let downloader = AFImageDownloader(sessionConfiguration: .ephemeral)
    #expect(downloader.imageCache is AFAutoPurgingImageCache && downloader.downloadPrioritizaton == .FIFO)
    #expect(downloader.sessionManager.responseSerializer is AFImageResponseSerializer)
    #expect(downloader.maximumActiveDownloads == 4)
    downloader.maximumActiveDownloads = 0
    downloader.downloadPrioritizaton = .LIFO
    #expect(downloader.maximumActiveDownloads == 1 && downloader.downloadPrioritization == .LIFO)
  }

  // MARK: - Downloads

  /// Equal requests have one answer. A request with other fields is another one.
  @Test func requestsWithOtherFields() async throws {
    let signal = TestServer.Signal()
    fixture.serve("/slow", after: signal)
    let request = try fixture.request("/slow")
    var other = request
    other.setValue("image/*", forHTTPHeaderField: "Accept")
    let starts = Event()
    let started: @Sendable (AFImageDownloadReceipt?) -> Void = { _ in starts.fire() }
    async let first = downloader.download(request, started: started)
    async let second = downloader.download(request, started: started)
    async let third = downloader.download(other, started: started)
    _ = try await fixture.server.waitForRequests(2)
    try await starts.wait(for: 3)
    #expect(downloader.downloadCount == 2)
    signal.fire()
    let results = await [first, second, third]
    #expect(results.allSatisfy { $0.image != nil })
    #expect(fixture.server.requestsReceived == 2)
    #expect(results[0].image === results[1].image && results[0].response === results[1].response)
  }

  /// Failures: those of the network and the server, and bytes that are no image.
  @Test func failures() async throws {
    fixture.server.route("GET", "/reset", script: [.reset])
    for (path, body) in [("/broken", "broken"), ("/text", "text"), ("/unknown", "<svg/>")] {
      fixture.server.route("GET", path) { _ in
        TestServer.Response(fields: ["Content-Type": "image/png"], body: .text(body))
      }
    }
    let reset = await downloader.download(try fixture.request("/reset"))
    #expect(reset.error?.domain == NSURLErrorDomain && reset.response == nil)
    let missing = await downloader.download(try fixture.request("/missing/404"))
    #expect(missing.error?.code == NSURLErrorBadServerResponse && missing.response?.statusCode == 404)
    #expect(await downloader.download(try fixture.request("/broken")).error != nil)
    let text = await downloader.download(try fixture.request("/text"))
    #expect(text.error?.localizedDescription.contains("String") == true)
    let unknown = await downloader.download(try fixture.request("/unknown"))
    #expect(unknown.error?.localizedDescription == AFImageError.notDecoded.errorDescription)
    #expect(fixture.cache.memoryUsage == 0)
    var noURL = try fixture.request("/")
    noURL.url = nil
    let nothing = await downloader.download(noURL) { #expect($0 == nil) }
    #expect(nothing.error?.code == NSURLErrorBadURL)
  }

  /// A giant claim reaches no decoder.
  @Test func giants() async throws {
    fixture.server.route("GET", "/giant") { _ in
      TestServer.Response(fields: ["Content-Type": "image/png"], body: .bytes(Array(PNG.head(60000, 60000))))
    }
    let result = await downloader.download(try fixture.request("/giant"))
    #expect(result.image == nil)
    #expect(result.error?.localizedDescription.contains("60000 x 60000 pixels") == true)
    (fixture.manager.responseSerializer as? AFImageResponseSerializer)?.imagePixelCountMax = .max
    #expect(await downloader.download(try fixture.request("/giant")).image?.decodedByteCount == 14_400_000_000)
  }

  @Test func anInvalidatedManager() async throws {
    fixture.manager.invalidateSessionCancelingTasks(true, resetSession: false)
    let result = await downloader.download(try fixture.request("/image/a"))
    #expect(result.error?.code == NSURLErrorCancelled && downloader.downloadCount == 0)
  }

  // MARK: - The cache

  /// The session's `URLCache` keeps the server's answers on disk: another downloader, without the image in memory, sends
  /// no request.
  @Test func onDisk() async throws {
    let directory = try TemporaryDirectory()
    fixture.server.route("GET", "/stored") { _ in
      TestServer.Response(
        fields: ["Content-Type": "image/png", "Cache-Control": "max-age=1000"], body: .bytes(Array(PNG.head(3, 3))))
    }
    let request = try fixture.request("/stored")
    let cache = URLCache(memoryCapacity: 0, diskCapacity: 1 << 20, directory: directory.url)
    for _ in 0..<2 {
      let configuration = URLSessionConfiguration.ephemeral
      configuration.urlCache = cache
      let result = await AFImageDownloader(sessionConfiguration: configuration).download(request)
      #expect((result.image as? AFImage)?.pixelWidth == 3 && result.response?.statusCode == 200)
    }
    #expect(fixture.server.requestsReceived == 1)
  }

  // MARK: - Identifiers

  /// Each of several requests ends, although they have one identifier: equal requests and others.
  @Test func requestsWithOneIdentifier() async throws {
    let signal = TestServer.Signal()
    fixture.serve("/slow", after: signal)
    fixture.serve("/other", after: signal)
    let (identifier, journal) = (UUID(), Journal())
    var receipts: [AFImageDownloadReceipt] = []
    for (index, path) in ["/slow", "/slow", "/other", "/slow"].enumerated() {
      let receipt = downloader.downloadImage(for: try fixture.request(path), withReceiptID: identifier) { _, _, _ in
        journal.note("\(index) has an image")
      } failure: { _, _, error in
        journal.note("\(index) has the error \((error as NSError).code)")
      }
      receipts.append(try #require(receipt))
    }
    #expect(receipts.allSatisfy { $0.receiptID == identifier } && downloader.downloadCount == 2)
    // A receipt cancels its own request.
    downloader.cancelTask(for: receipts[1])
    downloader.cancelTask(for: receipts[1])
    // Another downloader's receipt with an equal number.
    let others = AFImageDownloader(sessionConfiguration: .ephemeral)
    let foreign = try #require(others.downloadImage(for: try fixture.request("/hang"), withReceiptID: identifier))
    downloader.cancelTask(for: foreign)
    signal.fire()
    await journal.wait { $0.count == 4 }
    #expect(
      Set(journal.lines) == [
        "0 has an image", "1 has the error \(NSURLErrorCancelled)", "2 has an image", "3 has an image",
      ])
    others.cancelTask(for: foreign)
    #expect(others.downloadCount == 0 && downloader.downloadCount == 0)
  }

  // MARK: - Cancellation

  /// Each of several equal requests is cancelled by its own receipt; the last one cancels the task.
  @Test func cancellingEachOfSeveral() async throws {
    let hanging = try fixture.request("/hang")
    let receipts = Mutex<[AFImageDownloadReceipt]>([])
    let journal = Journal()
    for _ in 0..<3 {
      let receipt = downloader.downloadImage(for: hanging, success: nil) { _, _, error in
        journal.note("\((error as NSError).code)")
      }
      if let receipt { receipts.withLock { $0.append(receipt) } }
    }
    let all = receipts.withLock { $0 }
    #expect(all.count == 3 && Set(all.map { ObjectIdentifier($0.task) }).count == 1)
    downloader.cancelTask(for: all[1])
    downloader.cancelTask(for: all[1])
    #expect(downloader.downloadCount == 1 && all[0].task.state == .running)
    downloader.cancelTask(for: all[0])
    downloader.cancelTask(for: all[2])
    #expect(downloader.downloadCount == 0)
    await journal.wait { $0.count == 3 }
    #expect(journal.lines == Array(repeating: "\(NSURLErrorCancelled)", count: 3))
  }

  // MARK: - Queues

  @Test func anotherScheduler() async throws {
    let journal = Journal()
    downloader.scheduler = AFViewScheduler { work in
      journal.note("scheduled")
      work()
    }
    #expect(await !downloader.download(try fixture.request("/image/a")).isOnMain)
    #expect(journal.lines == ["scheduled"])
  }

  @Test func awaiting() async throws {
    downloader.scheduler = AFViewScheduler { _ in Issue.record("scheduled") }
    let image = try await downloader.image(for: try fixture.request("/image/a"))
    #expect((image as? Picture)?.name == "a")
    #expect(try await downloader.image(for: try fixture.request("/image/a")) === image)
    await #expect(throws: NSError.self) { try await downloader.image(for: try fixture.request("/missing/404")) }
    let request = try fixture.request("/hang")
    let task = Task { [downloader] in try await downloader.image(for: request) }
    task.cancel()
    await #expect(throws: URLError.self) { try await task.value }
    #expect(downloader.downloadCount == 0)
  }

  // MARK: - The memory of failures

  @Test func rememberedFailures() async throws {
    let request = try fixture.request("/missing/404")
    _ = await downloader.download(request)
    let again = await downloader.download(request) { #expect($0 == nil) }
    #expect(again.error?.code == NSURLErrorBadServerResponse)
    fixture.setTime(59)
    _ = await downloader.download(request)
    #expect(fixture.requestCounts == ["404": 1])
    fixture.setTime(60)
    _ = await downloader.download(request)
    #expect(fixture.requestCounts == ["404": 2])
    var reload = request
    reload.cachePolicy = .reloadIgnoringLocalCacheData
    _ = await downloader.download(reload)
    downloader.removeAllFailures()
    _ = await downloader.download(request)
    // A failure of the server that may pass is not remembered.
    for _ in 0..<2 { _ = await downloader.download(try fixture.request("/missing/503")) }
    #expect(fixture.requestCounts == ["404": 4, "503": 2])
    downloader.failureMemory.statusCodes = []
    for _ in 0..<2 { _ = await downloader.download(try fixture.request("/missing/410")) }
    #expect(fixture.requestCounts["410"] == 2)
  }

  // MARK: - Progress and parts

  private static let image = Array(PNG.head(20, 10, padding: 971))
  private static let head = Array("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 1000\r\n\r\n".utf8)

  /// Serves an image whose rest comes after a signal.
  private func serveParts(_ signal: TestServer.Signal) {
    fixture.server.route(
      "GET", "/parts",
      script: [.send(Self.head + Self.image[..<100]), .wait(signal), .send(Array(Self.image[100...])), .close])
  }

  @Test func progressAndParts() async throws {
    let signal = TestServer.Signal()
    serveParts(signal)
    let journal = Journal()
    let fractions = Mutex<[Int64]>([])
    var options = AFImageDownloadOptions()
    options.progress = { progress in fractions.withLock { $0.append(progress.completedUnitCount) } }
    options.partialImage = { image in
      journal.note((image as? Picture)?.name ?? "")
      signal.fire()
    }
    let result = await downloader.download(try fixture.request("/parts"), options: options)
    #expect(result.name == "parts")
    #expect(journal.lines.first?.hasPrefix("first ") == true && !journal.lines.contains("parts"))
    let counts = fractions.withLock { $0 }
    #expect(counts == counts.sorted() && counts.last == 1000)
  }

  /// All progress comes before the image, also if the thread of the views is late.
  @Test func progressOnALateThread() async throws {
    let loop = ImageStormTests.MainLoop()
    let fixture = try ImageFixture(scheduler: loop.scheduler)
    let journal = Journal()
    var options = AFImageDownloadOptions()
    options.progress = { journal.note("\($0.completedUnitCount)") }
    let request = try fixture.request("/image/a")
    fixture.downloader.downloadImage(for: request, options: options, success: { _, _, _ in journal.note("image") })
    await Wait.until("no download runs") { fixture.downloader.downloadCount == 0 }
    await Wait.until("the image is delivered") {
      loop.run()
      return journal.lines.contains("image")
    }
    #expect(journal.lines.suffix(2) == ["\(PNG.head(20, 10).count)", "image"])
  }

  /// A request that is cancelled gets no progress, not even what has been scheduled.
  @Test func progressAfterACancellation() async throws {
    let loop = ImageStormTests.MainLoop()
    let fixture = try ImageFixture(scheduler: loop.scheduler)
    let journal = Journal()
    var options = AFImageDownloadOptions()
    options.progress = { _ in journal.note("progress") }
    fixture.server.route("GET", "/parts", script: [.send(Self.head + Self.image[..<100]), .hang])
    let receipt = fixture.downloader.downloadImage(for: try fixture.request("/parts"), options: options) { _, _, _ in
      journal.note("image")
    } failure: { _, _, _ in
      journal.note("failure")
    }
    try await loop.scheduled.wait()
    if let receipt { fixture.downloader.cancelTask(for: receipt) }
    loop.run()
    #expect(journal.lines == ["failure"])
  }

  /// A request that joins a download gets its progress, also if the downloader has another manager by then.
  @Test func progressOfAJoinedDownload() async throws {
    let signal = TestServer.Signal()
    serveParts(signal)
    let request = try fixture.request("/parts")
    async let first = downloader.download(request)
    _ = try await fixture.server.waitForRequests(1)
    downloader.sessionManager = AFHTTPSessionManager(sessionConfiguration: .ephemeral)
    let counts = Mutex<[Int64]>([])
    var options = AFImageDownloadOptions()
    options.progress = { progress in counts.withLock { $0.append(progress.completedUnitCount) } }
    let second = await downloader.download(request, options: options) { _ in signal.fire() }
    let name = await first.name
    #expect(name == "parts" && second.name == "parts" && fixture.server.requestsReceived == 1)
    #expect(counts.withLock { $0 }.last == 1000)
    downloader.sessionManager.invalidateSessionCancelingTasks(true, resetSession: false)
  }

  /// A body with an error's status, and a giant, are not given to the incremental decoder.
  @Test func partsThatAreRefused() throws {
    let images = Mutex(0)
    let partial = PartialImage(PictureDecoder(), scale: 1, pixelCountMax: 100) { _ in images.withLock { $0 += 1 } }
    for byte in PNG.head(20, 10) { #expect(partial.decode(Data([byte])) == nil) }
    #expect(partial.decode(Data(count: 100)) == nil)
    let small = PartialImage(PictureDecoder(), scale: 1, pixelCountMax: 200) { _ in }
    let pieces = PNG.head(20, 10, padding: 4).map { small.decode(Data([$0])) as? Picture }
    // The head is read anew when the number of bytes has doubled: 24 are needed, 32 are there.
    #expect(pieces.compactMap { $0?.name } == ["first 32 bytes", "first 33 bytes"])
  }
}
