import LarkspurTestServer
import Testing

@Suite struct UploadLedgerTests {
  private static func head(_ method: String, _ path: String, _ fields: TestServer.Fields = [:]) -> UploadLedger.Head {
    var fields = fields
    fields.add("Upload-Draft-Interop-Version", "8")
    return UploadLedger.Head(method: method, path: path, fields: fields)
  }

  private static func created(_ ledger: inout UploadLedger) -> UploadLedger.Exchange? {
    guard case .receive(var exchange, _) = ledger.open(head("POST", "/files", ["Upload-Complete": "?1"])) else {
      return nil
    }
    _ = ledger.receive([1, 2], &exchange)
    return exchange
  }

  /// A request to the upload resource ends the one before: bytes that come late do not count, and complete nothing.
  @Test(arguments: ["HEAD", "DELETE"]) func aLaterRequestEndsTheOneBefore(method: String) throws {
    var ledger = UploadLedger(path: "/files", TestServer.ResumableUpload())
    var exchange = try #require(Self.created(&ledger))
    guard case .respond(let response) = ledger.open(Self.head(method, "/files/1")) else {
      Issue.record("no response")
      return
    }
    #expect(response.status == 204 && response.fields["Upload-Offset"] == (method == "HEAD" ? "2" : nil))
    guard case .end(.reset) = ledger.receive([3], &exchange), case .end(.reset) = ledger.finish(exchange) else {
      Issue.record("the request goes on")
      return
    }
    #expect(ledger.uploads[0].bytes == [1, 2] && !ledger.uploads[0].isComplete)
  }

  @Test func anAppendEndsTheCreation() throws {
    var ledger = UploadLedger(path: "/files", TestServer.ResumableUpload())
    var old = try #require(Self.created(&ledger))
    let fields: TestServer.Fields = [
      "Upload-Complete": "?1", "Upload-Offset": "2", "Content-Type": "application/partial-upload",
    ]
    guard case .receive(var new, _) = ledger.open(Self.head("PATCH", "/files/1", fields)) else {
      Issue.record("no append")
      return
    }
    _ = ledger.receive([3], &new)
    _ = ledger.receive([9], &old)
    guard case .respond(let response) = ledger.finish(new) else {
      Issue.record("no response")
      return
    }
    #expect(response.status == 200 && ledger.uploads[0].bytes == [1, 2, 3] && ledger.uploads[0].isComplete)
  }

  /// More bytes than the upload's length make it useless.
  @Test func tooManyBytes() {
    var ledger = UploadLedger(path: "/files", TestServer.ResumableUpload())
    let fields: TestServer.Fields = ["Upload-Complete": "?0", "Upload-Length": "3"]
    guard case .receive(var exchange, _) = ledger.open(Self.head("POST", "/files", fields)),
      case .proceed = ledger.receive([1, 2, 3], &exchange), case .refuse(let response) = ledger.receive([4], &exchange)
    else {
      Issue.record("the byte is taken")
      return
    }
    #expect(response.status == 400 && !ledger.uploads[0].isActive && ledger.uploads[0].bytes == [1, 2, 3])
  }
}
