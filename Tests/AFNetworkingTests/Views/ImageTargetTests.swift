import AFNetworking
import LarkspurTestServer
import Synchronization
import Testing

/// What AFNetworking's own tests of `UIImageView` and `UIButton` leave open, for any toolkit's view. Everything that
/// touches a view runs on the main actor.
@MainActor @Suite(.timeLimit(.minutes(1))) struct ImageTargetTests {
  /// A view that is bound to the main actor.
  @MainActor final class PictureView {
    var image: Picture? { didSet { journal.note(image?.name ?? "none") } }
    let imageSlot: AFImageSlot
    let journal = Journal()

    init(_ fixture: ImageFixture, showsPartialImages: Bool = false) {
      imageSlot = AFImageSlot(downloader: fixture.downloader, showsPartialImages: showsPartialImages)
    }
  }

  let fixture: ImageFixture
  let view: PictureView
  var lines: [String] { view.journal.lines }

  init() throws {
    fixture = try ImageFixture()
    view = PictureView(fixture)
  }

  private func url(_ path: String) throws -> URL { try #require(try fixture.request(path).url) }

  /// An image from the cache is set at once, without a response and without the placeholder.
  @Test func fromTheCache() async throws {
    let downloaded = await fixture.downloader.download(try fixture.request("/image/a"))
    view.setImageWith(try fixture.request("/image/a"), placeholderImage: Picture("placeholder"))
    #expect(view.image === downloaded.image && lines == ["a"])
    var responses: [HTTPURLResponse?] = []
    view.setImage(with: try fixture.request("/image/a"), placeholderImage: nil) { _, response, image in
      #expect(image === downloaded.image)
      responses.append(response)
    }
    #expect(responses == [nil] && lines == ["a"])
  }

  /// The latest request wins, whatever the order of the answers. The blocks of the replaced request are not called.
  @Test func theLatestRequestWins() async throws {
    let signal = TestServer.Signal()
    fixture.server.route("GET", "/slow", script: [.wait(signal), .close])
    view.setImageWith(try fixture.request("/slow"), placeholderImage: nil) { _, _, _ in
      Issue.record("success")
    } failure: { _, _, _ in
      Issue.record("failure")
    }
    view.setImageWith(try url("/image/b"))
    await view.journal.wait(for: "b")
    signal.fire()
    #expect(lines == ["b"] && fixture.downloader.downloadCount == 0)
  }

  @Test func cancelling() async throws {
    view.setImageWith(try fixture.request("/hang"), placeholderImage: nil, success: nil) { _, _, _ in
      Issue.record("failure")
    }
    view.cancelImageDownloadTask()
    #expect(!view.imageSlot.isLoading && fixture.downloader.downloadCount == 0)
    // What a cancelled request has scheduled comes before this.
    await withCheckedContinuation { done in AFViewScheduler.shared.perform { done.resume() } }
    #expect(lines == [])
  }

  /// A picture of another toolkit is an error.
  @Test func anotherTypeOfPicture() async throws {
    final class OtherView: AFImageTarget {
      var image: AFImage?
      let imageSlot: AFImageSlot
      init(_ slot: AFImageSlot) { imageSlot = slot }
    }
    let other = OtherView(AFImageSlot(downloader: fixture.downloader))
    let request = try fixture.request("/image/a")
    let error = await withCheckedContinuation { done in
      other.setImage(with: request, placeholderImage: nil, success: nil) { _, _, error in
        done.resume(returning: error)
      }
    }
    #expect(error as? AFImageError == .unsuitableType("Picture") && other.image == nil)
  }

  @Test func parts() async throws {
    let view = PictureView(fixture, showsPartialImages: true)
    let signal = TestServer.Signal()
    let whole = Array(PNG.head(20, 10, padding: 971))
    let head = Array("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 1000\r\n\r\n".utf8)
    fixture.server.route(
      "GET", "/parts", script: [.send(head + whole[..<100]), .wait(signal), .send(Array(whole[100...])), .close])
    view.setImageWith(try url("/parts"))
    await view.journal.wait { $0.contains { $0.hasPrefix("first ") } }
    signal.fire()
    await view.journal.wait(for: "parts")
    #expect(view.journal.lines.last == "parts")
  }

  @Test func theSharedDownloader() throws {
    let old = PictureView.sharedImageDownloader()
    #expect(old === AFImageDownloader.defaultInstance() && Button.sharedImageDownloader() === old)
    PictureView.setSharedImageDownloader(fixture.downloader)
    #expect(Button.sharedImageDownloader() === fixture.downloader)
    Button.setSharedImageDownloader(old)
    #expect(PictureView.sharedImageDownloader() === old)
  }

  // MARK: - Buttons

  @MainActor final class Button: @MainActor AFButtonTarget {
    enum ControlState { case normal, pressed }

    let imageSlots: AFButtonImageSlots
    let journal = Journal()

    init(_ fixture: ImageFixture) { imageSlots = AFButtonImageSlots(downloader: fixture.downloader) }

    func setImage(_ image: Picture?, for state: ControlState) { journal.note("\(state) \(image?.name ?? "")") }

    func setBackgroundImage(_ image: Picture?, for state: ControlState) {
      journal.note("\(state) background \(image?.name ?? "")")
    }
  }

  @Test func buttons() async throws {
    let button = Button(fixture)
    button.setImageFor(.normal, with: try url("/image/a"))
    button.setImage(for: .pressed, with: try url("/image/b"), placeholderImage: Picture("placeholder"))
    button.setBackgroundImageFor(.normal, with: try url("/image/c"))
    button.setBackgroundImage(for: .pressed, with: try url("/image/a"))
    await button.journal.wait { $0.count == 5 }
    #expect(
      Set(button.journal.lines) == [
        "normal a", "pressed placeholder", "pressed b", "normal background c", "pressed background a",
      ])
    #expect(fixture.requestCounts == ["a": 1, "b": 1, "c": 1])
  }

  @Test func buttonsThatAreCancelled() async throws {
    let button = Button(fixture)
    button.setImageFor(.normal, with: try fixture.request("/hang"), placeholderImage: nil)
    button.setBackgroundImageFor(.normal, with: try fixture.request("/hang"), placeholderImage: nil)
    #expect(fixture.downloader.downloadCount == 1)
    button.cancelImageDownloadTask(for: .pressed)
    button.cancelImageDownloadTask(for: .normal)
    #expect(fixture.downloader.downloadCount == 1)
    button.cancelBackgroundImageDownloadTask(for: .normal)
    #expect(fixture.downloader.downloadCount == 0 && button.journal.lines == [])
  }
}

extension ImageTargetTests.PictureView: @MainActor AFImageTarget {}
