import Foundation
import Testing

@testable import AFNetworking

/// Tests the media types of file extensions.
@Suite struct MIMETypesTests {
  let directory: FormDirectory

  init() throws { directory = try FormDirectory() }

  @Test func aTableIsReadAsTheSystemWritesIt() throws {
    let table = """
      # a comment
      image/png\t\t\t\tpng
      application/x-x509-ca-cert cer  crt
      text/plain  txt text # text: none
      text/other txt
      application/without-extensions
      nonsense foo
      """
    let types = MIMETypes(path: try directory.file("mime.types", Array(table.utf8)).path)
    #expect(types.type(ofExtension: "png") == "image/png")
    #expect(types.type(ofExtension: "PNG") == "image/png")
    #expect(types.type(ofExtension: "cer") == "application/x-x509-ca-cert")
    #expect(types.type(ofExtension: "crt") == "application/x-x509-ca-cert")
    #expect(types.type(ofExtension: "txt") == "text/plain")
    #expect(types.type(ofExtension: "foo") == "application/octet-stream")
    #expect(types.type(ofExtension: "none") == "application/octet-stream")
    #expect(types.type(ofExtension: "") == "application/octet-stream")
  }

  @Test func withoutATableCommonTypesAreKnown() throws {
    for path in [directory.url.appending(path: "missing").path, try directory.file("empty", []).path] {
      let types = MIMETypes(path: path)
      #expect(types.type(ofExtension: "jpg") == "image/jpeg")
      #expect(types.type(ofExtension: "json") == "application/json")
      #expect(types.type(ofExtension: "zip") == "application/zip")
      #expect(types.type(ofExtension: "xyz") == "application/octet-stream")
    }
  }

  @Test(arguments: [0, 1])
  func aTableHasALimit(more: Int) throws {
    let line = Array("own/type own\n".utf8)
    let padding = [UInt8](repeating: UInt8(ascii: "\n"), count: MIMETypes.fileBytesMax - line.count + more)
    let types = MIMETypes(path: try directory.file("large", line + padding).path)
    #expect(types.type(ofExtension: "own") == (more == 0 ? "own/type" : "application/octet-stream"))
  }

  @Test func theSystemsTypesAreUsed() {
    #expect(MIMETypes.system.type(ofExtension: "jpeg") == "image/jpeg")
    #expect(MIMETypes.system.type(ofExtension: "html") == "text/html")
  }
}
