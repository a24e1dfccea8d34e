import LarkspurTestServer
import TestKit
import Testing

@Suite(.ownThread) struct UploadStepTests {
  @Test func anAnnouncementAndACut() throws {
    let server = try TestServer()
    server.enqueue([
      .expectHead, .announceUpload(at: "/u/1", version: 3, ["Upload-Limit": "max-size=9"]), .expectBytes(count: 2),
      .announceUpload(at: nil, version: nil, offset: 2), .expectBytes(count: 1), .close,
    ])
    let client = try RawClient(server)
    try client.send("POST /x HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\nabc")
    let text = try client.textToEnd()
    #expect(
      text == "HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /u/1\r\nUpload-Draft-Interop-Version: 3\r\n"
        + "Upload-Limit: max-size=9\r\n\r\nHTTP/1.1 104 Upload Resumption Supported\r\nUpload-Offset: 2\r\n\r\n")
    #expect(server.failures.isEmpty)
  }
}
