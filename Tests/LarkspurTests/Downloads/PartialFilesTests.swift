import Foundation
import LarkspurHTTP
import LarkspurTLS
import TestKit
import Testing

@testable import Larkspur

@Suite struct PartialFilesTests {
  let directory: TemporaryDirectory
  let files: PartialFiles

  init() throws {
    directory = try TemporaryDirectory()
    files = PartialFiles(in: directory.url.path, name: "partial")
  }

  private let point = ResumePoint(validator: "\"one\"", offset: 5, total: 10, coding: nil)

  private func request() throws -> URLRequest { URLRequest(url: try #require(URL(string: "http://localhost/file"))) }

  private func kept() throws -> ResumeData {
    let file = try DownloadFile(in: files)
    try file.write(Array("01234".utf8).span)
    let data = try #require(files.keep(file, of: request(), at: point))
    return try ResumeData.decoded(data, key: { files.key(isCreating: false) })
  }

  private func mode(_ path: String) throws -> Int? {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return (attributes[.posixPermissions] as? NSNumber)?.intValue
  }

  @Test func whatIsKeptIsThisUsersAlone() throws {
    let data = try kept()
    #expect(try mode(files.path) == 0o700)
    #expect(try mode(files.path + "/key") == 0o600)
    #expect(try mode(files.path + "/" + data.fileName) == 0o600)
    #expect(data.point == point)
    #expect(try data.request == request())
    #expect(files.open(data) != nil)
  }

  @Test func aDirectoryThatOthersMayEnterIsClosedToThem() throws {
    try FileManager.default.createDirectory(
      atPath: files.path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o777])
    _ = try kept()
    #expect(try mode(files.path) == 0o700)
  }

  @Test func aLinkInPlaceOfTheDirectoryIsNotFollowed() throws {
    let elsewhere = directory.path("elsewhere")
    try FileManager.default.createDirectory(atPath: elsewhere, withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(atPath: files.path, withDestinationPath: elsewhere)
    let file = try DownloadFile(in: files)
    #expect(files.keep(file, of: try request(), at: point) == nil)
    #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere).isEmpty)
    // The file is none of the directory's, and can still be given to the program.
    try file.name(stays: false)
    #expect(file.url.map { FileManager.default.fileExists(atPath: $0.path) } == true)
  }

  @Test func whatHasTakenThePartsPlaceIsNotOpened() throws {
    let data = try kept()
    let path = files.path + "/" + data.fileName
    let secret = directory.path("secret")
    try Data("01234".utf8).write(to: URL(filePath: secret))
    // A symbolic link, a hard link to another file and a file of another size are not opened.
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: secret)
    #expect(files.open(data) == nil)
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.linkItem(atPath: secret, toPath: path)
    #expect(files.open(data) == nil)
    try FileManager.default.removeItem(atPath: path)
    for text in ["0123", "012345"] {
      try Data(text.utf8).write(to: URL(filePath: path))
      #expect(files.open(data) == nil)
    }
    try Data("01234".utf8).write(to: URL(filePath: path))
    #expect(files.open(data) != nil)
  }

  @Test(arguments: [
    "../secret.part", "/etc/passwd", "..part", ".part", "a/b.part", "key", "a.part/..", "ä.part", "a b.part",
    "a.b.part",
    String(repeating: "a", count: 65) + ".part", "",
  ])
  func noOtherNamesAreOurs(name: String) throws {
    #expect(!PartialFiles.isName(name))
    var data = try kept()
    data.fileName = name
    #expect(files.open(data) == nil)
    #expect(!files.moveOut(data, to: files.freshURL()))
    // Resume data with such a file name is refused even if its signature is right.
    let key = try #require(files.key(isCreating: false))
    let encoded = try #require(data.encoded(key: key))
    #expect(throws: ResumeData.Refusal.unreadable) { try ResumeData.decoded(encoded, key: { key }) }
  }

  @Test(arguments: [1, 64])
  func namesOfOursAreOurs(count: Int) {
    #expect(PartialFiles.isName(String(repeating: "a", count: count) + ".part"))
    #expect(PartialFiles.isName("0123-ABC.part"))
  }

  @Test func anotherUsersDataIsForeign() throws {
    let data = try kept()
    let encoded = try #require(data.encoded(key: [UInt8](repeating: 1, count: 32)))
    #expect(throws: ResumeData.Refusal.changed) {
      try ResumeData.decoded(encoded, key: { files.key(isCreating: false) })
    }
    #expect(throws: ResumeData.Refusal.foreign) { try ResumeData.decoded(encoded, key: { nil }) }
    let tooLong = Data(count: ResumeData.bytesMax + 1)
    #expect(throws: ResumeData.Refusal.tooLong) { try ResumeData.decoded(tooLong, key: { [] }) }
    let longest = Data(count: ResumeData.bytesMax)
    #expect(throws: ResumeData.Refusal.foreign) { try ResumeData.decoded(longest, key: { [] }) }
  }

  @Test func theKeyIsMadeOnce() throws {
    #expect(files.key(isCreating: false) == nil)
    let key = try #require(files.key(isCreating: true))
    #expect(key.count == 32)
    #expect(files.key(isCreating: true) == key)
    #expect(try FileManager.default.contentsOfDirectory(atPath: files.path) == ["key"])
  }

  @Test func oldFilesGo() throws {
    let (old, new) = (try kept(), try kept())
    let week = Double(PartialFiles.daysMax) * 86_400
    let path = files.path + "/"
    let date = Date(timeIntervalSince1970: 1_000_000_000)
    for data in [old, new] {
      try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path + data.fileName)
    }
    try FileManager.default.setAttributes(
      [.modificationDate: date.addingTimeInterval(1)], ofItemAtPath: path + new.fileName)
    files.sweep(now: date.addingTimeInterval(week + 0.5))
    #expect(files.open(old) == nil)
    #expect(files.open(new) != nil)
    #expect(files.key(isCreating: false) != nil)
  }

  /// The clock that was ahead when a file was kept does not keep the file for ever.
  @Test func filesOfTheFutureGetOld() throws {
    let data = try kept()
    let (path, now) = (files.path + "/" + data.fileName, Date())
    try FileManager.default.setAttributes([.modificationDate: now.addingTimeInterval(1e9)], ofItemAtPath: path)
    files.sweep(now: now)
    #expect(files.open(data) != nil)
    files.sweep(now: now.addingTimeInterval(Double(PartialFiles.daysMax) * 86_400 + 1))
    #expect(files.open(data) == nil)
  }

  @Test func theOldestGoWhenThereAreTooMany() throws {
    let oldest = try kept()
    let path = files.path + "/"
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -100)], ofItemAtPath: path + oldest.fileName)
    for number in 2..<PartialFiles.filesMax {
      #expect(FileManager.default.createFile(atPath: path + "\(number).part", contents: Data()))
    }
    files.sweep(now: Date())
    #expect(files.open(oldest) != nil)
    #expect(FileManager.default.createFile(atPath: path + "more.part", contents: Data()))
    files.sweep(now: Date())
    #expect(files.open(oldest) == nil)
  }

  // RFC 4231, test cases 1, 2 and 6.
  @Test(arguments: [
    (
      [UInt8](repeating: 0x0B, count: 20), "Hi There",
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
    ),
    (
      Array("Jefe".utf8), "what do ya want for nothing?",
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    ),
    (
      [UInt8](repeating: 0xAA, count: 131), "Test Using Larger Than Block-Size Key - Hash Key First",
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    ),
  ])
  func theCodeIsHMAC(key: [UInt8], message: String, expected: String) throws {
    let code = try #require(MessageAuthentication.code(of: Array(message.utf8), key: key))
    #expect(code.map { String(format: "%02x", $0) }.joined() == expected)
  }
}
