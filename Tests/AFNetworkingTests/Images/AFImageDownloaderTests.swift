import AFNetworking
import LarkspurTestServer
import Synchronization
import Testing

/// AFNetworking's tests of its image downloader, by their names, on a server of our own.
@Suite(.timeLimit(.minutes(1))) struct AFImageDownloaderTests {
  let fixture: ImageFixture
  let png: URLRequest
  let jpeg: URLRequest
  var downloader: AFImageDownloader { fixture.downloader }

  init() throws {
    fixture = try ImageFixture()
    png = try fixture.request("/image/png")
    jpeg = try fixture.request("/image/jpeg")
  }

  // MARK: - Downloads

  @Test func thatImageDownloaderSingletonCanBeInitialized() {
    #expect(AFImageDownloader.defaultInstance() === AFImageDownloader.defaultInstance())
  }

  /// A downloader that is released while it downloads completes its downloads.
  @Test func thatImageDownloaderCanBeInitializedAndDeinitializedWithActiveDownloads() async {
    let result = await AFImageDownloader(sessionConfiguration: .ephemeral).download(png)
    #expect((result.image as? AFImage)?.pixelWidth == 20)
  }

  @Test func thatImageDownloaderReturnsNilWithInvalidURL() async {
    var request = png
    request.url = nil
    let result = await downloader.download(request) { #expect($0 == nil) }
    #expect(result.error?.domain == NSURLErrorDomain && result.error?.code == NSURLErrorBadURL)
  }

  @Test func thatImageDownloaderCanDownloadImage() async {
    let result = await downloader.download(png) { #expect($0 != nil) }
    #expect(result.name == "png" && result.response?.statusCode == 200 && result.image?.decodedByteCount == 800)
    #expect(downloader.downloadCount == 0)
  }

  @Test func thatItCanDownloadMultipleImagesSimultaneously() async {
    async let first = downloader.download(png)
    async let second = downloader.download(jpeg)
    let results = await [first, second]
    #expect(results.map(\.name) == ["png", "jpeg"] && results.allSatisfy { $0.response != nil })
  }

  @Test func thatSimultaneouslyRequestsForTheSameAssetReceiveSameResponse() async throws {
    let signal = TestServer.Signal()
    fixture.serve("/slow", after: signal)
    let request = try fixture.request("/slow")
    async let first = downloader.download(request)
    _ = try await fixture.server.waitForRequests(1)
    let second = await downloader.download(request) { _ in signal.fire() }
    let other = await first
    #expect(second.image != nil && second.image === other.image && second.response === other.response)
    #expect(fixture.server.requestsReceived == 1)
  }

  @Test func thatImageBehindRedirectCanBeDownloaded() async throws {
    fixture.server.route("GET", "/moved") { _ in .redirect(to: "/image/jpeg") }
    let result = await downloader.download(try fixture.request("/moved"))
    #expect(result.name == "jpeg" && result.response?.url == jpeg.url)
  }

  // MARK: - Caching

  @Test func thatResponseIsNilWhenReturnedFromCache() async {
    let (first, second) = (await downloader.download(png), await downloader.download(png))
    #expect(first.response != nil && first.image != nil)
    #expect(second.response == nil && second.image === first.image && fixture.requestCounts == ["png": 1])
  }

  @Test func thatImageDownloadReceiptIsNilForCachedImage() async {
    _ = await downloader.download(png) { #expect($0 != nil) }
    _ = await downloader.download(png) { #expect($0 == nil) }
  }

  @Test func thatCacheIsIgnoredIfCacheIgnoredInRequest() async {
    var reload = png
    reload.cachePolicy = .reloadIgnoringLocalCacheData
    let first = await downloader.download(png)
    let second = await downloader.download(reload) { #expect($0 != nil) }
    #expect(first.image != nil && second.image != nil && first.image !== second.image)
    #expect(first.response != nil && second.response != nil && fixture.requestCounts == ["png": 2])
  }

  /// A cache that notes what it is asked, and keeps images or not.
  private final class AskedCache: AFAutoPurgingImageCache, @unchecked Sendable {
    let journal = Journal()
    let accepts: Bool

    init(accepts: Bool) {
      self.accepts = accepts
      super.init(memoryCapacity: 1 << 20, preferredMemoryCapacity: 1 << 20)
    }

    override func shouldCache(
      _ image: any AFDecodedImage, for request: URLRequest, withAdditionalIdentifier identifier: String?
    ) -> Bool {
      journal.note("\((image as? Picture)?.name ?? "") \(request.url?.path ?? "") \(identifier ?? "none")")
      return accepts
    }
  }

  @Test func thatImageCacheIsPromptedShouldCache() async {
    let cache = AskedCache(accepts: true)
    downloader.imageCache = cache
    for _ in 0..<2 { _ = await downloader.download(png) }
    #expect(cache.journal.lines == ["png /image/png none"] && cache.memoryUsage == 800)
  }

  @Test func thatImageCacheIsPromptedShouldCacheNot() async {
    let cache = AskedCache(accepts: false)
    downloader.imageCache = cache
    for _ in 0..<2 { _ = await downloader.download(png) }
    #expect(cache.journal.lines == Array(repeating: "png /image/png none", count: 2))
    #expect(cache.memoryUsage == 0 && fixture.requestCounts == ["png": 2])
  }

  // MARK: - Cancellation

  @Test func thatCancellingDownloadCallsCompletionWithCancellationError() async throws {
    let result = await downloader.download(try fixture.request("/hang")) { receipt in
      if let receipt { downloader.cancelTask(for: receipt) }
    }
    #expect(result.error?.domain == NSURLErrorDomain && result.error?.code == NSURLErrorCancelled)
    #expect(downloader.downloadCount == 0)
  }

  @Test func thatCancellingDownloadWithMultipleResponseHandlersCancelsFirstYetAllowsSecondToComplete() async throws {
    let signal = TestServer.Signal()
    fixture.serve("/slow", after: signal)
    let request = try fixture.request("/slow")
    async let first = downloader.download(request)
    _ = try await fixture.server.waitForRequests(1)
    let second = await downloader.download(request) { receipt in
      if let receipt { downloader.cancelTask(for: receipt) }
    }
    signal.fire()
    #expect(second.error?.domain == NSURLErrorDomain && second.error?.code == NSURLErrorCancelled)
    let name = await first.name
    #expect(name == "slow" && fixture.server.requestsReceived == 1)
  }

  @Test func thatItCanDownloadAndCancelAndDownloadAgain() async throws {
    let signal = TestServer.Signal()
    let requests = try (0..<8).map { number in
      fixture.serve("/slow/\(number)", after: signal)
      return try fixture.request("/slow/\(number)")
    }
    let journal = Journal()
    for request in requests {
      let receipt = downloader.downloadImage(for: request) { _, _, _ in
        journal.note("image")
      } failure: { _, _, error in
        journal.note("\((error as NSError).code)")
      }
      if let receipt { downloader.cancelTask(for: receipt) }
    }
    signal.fire()
    for request in requests { #expect(await downloader.download(request).name == request.url?.lastPathComponent) }
    await journal.wait { $0.count == 8 }
    #expect(journal.lines == Array(repeating: "\(NSURLErrorCancelled)", count: 8))
  }

  // MARK: - Threads and receipts

  @Test func thatItAlwaysCallsTheSuccessHandlerOnTheMainQueue() async {
    let result = await downloader.download(png)
    #expect(result.image != nil && result.isOnMain)
  }

  @Test func thatItAlwaysCallsTheFailureHandlerOnTheMainQueue() async throws {
    let result = await downloader.download(try fixture.request("/missing/404"))
    #expect(result.error != nil && result.isOnMain)
  }

  @Test func thatReceiptIDMatchesReturnedID() throws {
    let identifier = UUID()
    let receipt = try #require(downloader.downloadImage(for: jpeg, withReceiptID: identifier))
    #expect(receipt.receiptID == identifier)
    downloader.cancelTask(for: receipt)
  }
}
