import AFNetworking
import LarkspurTestServer
import Testing

/// AFNetworking's tests of `UIImageView`, by their names, for a view of any toolkit that is bound to the main actor.
@MainActor @Suite(.timeLimit(.minutes(1))) struct AFUIImageViewTests {
  let fixture: ImageFixture
  let view: ImageTargetTests.PictureView
  let jpeg: URLRequest
  let placeholder = Picture("placeholder")
  var lines: [String] { view.journal.lines }

  init() throws {
    fixture = try ImageFixture()
    view = ImageTargetTests.PictureView(fixture)
    jpeg = try fixture.request("/image/jpeg")
  }

  private func url(_ path: String) throws -> URL { try #require(try fixture.request(path).url) }

  @Test func thatImageCanBeDownloadedFromURL() async throws {
    #expect(view.image == nil)
    view.setImageWith(try url("/image/jpeg"))
    #expect(view.imageSlot.isLoading)
    await view.journal.wait(for: "jpeg")
    #expect(view.image?.name == "jpeg" && !view.imageSlot.isLoading)
    #expect(fixture.server.requests.first?.fields["accept"] == "image/*")
  }

  @Test func thatImageDownloadSucceedsWhenDuplicateRequestIsSentToImageView() async throws {
    for _ in 0..<2 { view.setImage(with: try url("/image/jpeg")) }
    await view.journal.wait(for: "jpeg")
    #expect(lines == ["jpeg"] && fixture.requestCounts == ["jpeg": 1])
  }

  @Test func thatPlaceholderImageIsSetIfRequestFails() async throws {
    let journal = Journal()
    view.setImageWith(try fixture.request("/missing/404"), placeholderImage: placeholder, success: nil) {
      journal.note("\($1?.statusCode ?? 0) \(($2 as NSError).code)")
    }
    #expect(lines == ["placeholder"])
    await journal.wait(for: "404 \(NSURLErrorBadServerResponse)")
    #expect(view.image === placeholder)
  }

  @Test func thatPlaceholderImageIsReplacedWhenImageRequestSucceeds() async {
    view.setImageWith(jpeg, placeholderImage: placeholder, success: nil, failure: nil)
    await view.journal.wait(for: "jpeg")
    #expect(lines == ["placeholder", "jpeg"])
  }

  @Test func responseIsNilWhenLoadedFromCache() async {
    let downloaded = await fixture.downloader.download(jpeg)
    var responses: [HTTPURLResponse?] = []
    view.setImageWith(jpeg, placeholderImage: nil) { _, response, image in
      #expect(image === downloaded.image)
      responses.append(response)
    }
    #expect(responses == [nil])
  }

  @Test func thatImageCanBeCancelledAndDownloadedImmediately() async throws {
    view.setImageWith(try url("/image/jpeg"))
    view.cancelImageDownloadTask()
    let journal = Journal()
    view.setImageWith(jpeg, placeholderImage: nil) { journal.note($2.name) }
    await journal.wait { $0.count == 1 }
    #expect(journal.lines == ["jpeg"] && lines == [])
  }

  /// A URL cannot be `nil` in Swift, but that of a request can.
  @Test func thatNilURLDoesntCrash() async {
    var request = jpeg
    request.url = nil
    let journal = Journal()
    view.setImageWith(request, placeholderImage: placeholder, success: nil) { _, _, error in
      journal.note("\((error as NSError).code)")
    }
    await journal.wait { $0.count == 1 }
    #expect(journal.lines == ["\(NSURLErrorBadURL)"] && view.image === placeholder && !view.imageSlot.isLoading)
  }

  @Test func thatImageBehindRedirectCanBeDownloaded() async throws {
    fixture.server.route("GET", "/moved") { _ in .redirect(to: "/image/jpeg") }
    view.setImageWith(try url("/moved"))
    await view.journal.wait(for: "jpeg")
    #expect(lines == ["jpeg"])
  }
}
