import AFNetworking
import LarkspurTestServer
import Testing

/// AFNetworking's tests of `UIButton`, by their names, for a button of any toolkit that is bound to the main actor.
@MainActor @Suite(.timeLimit(.minutes(1))) struct AFUIButtonTests {
  let fixture: ImageFixture
  let button: ImageTargetTests.Button
  let jpeg: URLRequest

  init() throws {
    fixture = try ImageFixture()
    button = ImageTargetTests.Button(fixture)
    jpeg = try fixture.request("/image/jpeg")
  }

  @Test func thatBackgroundImageChanges() async throws {
    button.setBackgroundImageFor(.normal, with: try #require(jpeg.url))
    #expect(button.journal.lines == [])
    await button.journal.wait { $0.count == 1 }
    #expect(button.journal.lines == ["normal background jpeg"])
  }

  @Test func thatForegroundImageCanBeCancelledAndDownloadedImmediately() async throws {
    button.setImageFor(.normal, with: try #require(jpeg.url))
    button.cancelImageDownloadTask(for: .normal)
    let journal = Journal()
    button.setImageFor(.normal, with: jpeg, placeholderImage: nil) { journal.note($2.name) }
    await journal.wait { $0.count == 1 }
    #expect(journal.lines == ["jpeg"] && button.journal.lines == [])
  }

  @Test func thatBackgroundImageCanBeCancelledAndDownloadedImmediately() async throws {
    button.setBackgroundImageFor(.normal, with: try #require(jpeg.url))
    button.cancelBackgroundImageDownloadTask(for: .normal)
    let journal = Journal()
    button.setBackgroundImageFor(.normal, with: jpeg, placeholderImage: nil) {
      journal.note($2.name)
    }
    await journal.wait { $0.count == 1 }
    #expect(journal.lines == ["jpeg"] && button.journal.lines == [])
  }
}
