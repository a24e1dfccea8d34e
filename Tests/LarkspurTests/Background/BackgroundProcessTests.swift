import Foundation
import Larkspur
import LarkspurTestServer
import TestKit
import Testing

/// Tests background sessions whose programs are killed.
@Suite(.serialized, .timeLimit(.minutes(5))) struct BackgroundProcessTests {
  let fixture: BackgroundFixture

  init() throws { fixture = try BackgroundFixture() }

  private static let size = 200_000

  /// A download that is killed in its middle continues from its last checkpoint in the next process, and the file is
  /// there.
  @Test(.ownThread) func aKilledDownloadGoesOn() async throws {
    let (signal, content) = (TestServer.Signal(), Data(TestServer.content(count: Self.size)))
    _ = try fixture.file("ends", "")
    let head = "HTTP/1.1 200 OK\r\nContent-Length: \(Self.size)\r\nETag: \"/file\"\r\n\r\n"
    let pieces = (0..<100).flatMap { index -> [TestServer.Step] in
      [.sendContent(index * 1_000..<(index + 1) * 1_000), .pause(.milliseconds(30))]
    }
    fixture.server.enqueue(TestServer.Script([.expectRequest, .send(head)] + pieces + [.wait(signal), .close]))
    fixture.serve("/file", count: Self.size)
    let tasks = [(kind: "get", path: "/file", name: "download")]
    let first = try fixture.program(tasks)
    #expect(first.wait(for: "begun"))
    // The first checkpoint is a second behind the first byte.
    let folder = fixture.folder
    await Wait.until("the record names the file's version") {
      let path = folder.appending(path: "larkspur/groups/tests/transfers/transfers/1.task").path
      return FileManager.default.contents(atPath: path).map { $0.range(of: Data("\"/file\"".utf8)) != nil } ?? false
    }
    first.kill()
    signal.fire()
    _ = try fixture.program(tasks).text()
    #expect(try Data(contentsOf: folder.appending(path: "download")) == content)
    #expect(try fixture.ends() == ["download 0"])
    let range = try #require(fixture.server.requests.last?.fields["range"])
    #expect(range.hasPrefix("bytes=") && range != "bytes=0-")
    #expect(fixture.journal().isEmpty)
  }

  /// An upload whose program is killed continues from the server's last acknowledgement, if the server supports it.
  @Test(.ownThread) func aKilledUploadGoesOn() async throws {
    var options = TestServer.ResumableUpload()
    options.progressBytes = 1 << 20
    options.faults = [.hang]
    let uploads = fixture.server.resumableUploads("/files", options)
    let content = TestServer.content(count: 3 << 20)
    try Data(content).write(to: fixture.folder.appending(path: "upload"))
    _ = try fixture.file("ends", "")
    let tasks = [(kind: "put", path: "/files", name: "upload")]
    let first = try fixture.program(tasks)
    #expect(first.wait(for: "begun"))
    let folder = fixture.folder
    await Wait.until("the record has the upload's point") {
      let path = folder.appending(path: "larkspur/groups/tests/transfers/transfers/1.task").path
      return FileManager.default.contents(atPath: path).map { $0.range(of: Data("LarkspurUpload".utf8)) != nil }
        ?? false
    }
    first.kill()
    _ = try fixture.program(tasks).text()
    #expect(uploads.all.count == 1 && uploads.all.last?.isComplete == true)
    #expect(uploads.all.last?.bytes == content)
    #expect(try fixture.ends() == ["upload 0"])
    #expect(fixture.server.requests.map(\.method).contains("HEAD"))
    #expect(fixture.journal().isEmpty)
  }
}
