import Foundation
import Testing
import ZipArchive

@Suite struct RoundTripTests {
  @Test func oneFile() throws {
    let room = FileManager.default.temporaryDirectory.appending(path: "z-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: room) }
    let source = room.appending(path: "source")
    try FileManager.default.createDirectory(at: source, withIntermediateDirectories: true)
    try Data("hello".utf8).write(to: source.appending(path: "a.txt"))
    let archive = room.appending(path: "a.zip").path
    #expect(SSZipArchive.createZipFile(atPath: archive, withContentsOfDirectory: source.path))
    try SSZipArchive.unzipFile(
      atPath: archive, toDestination: room.appending(path: "out").path, overwrite: false, password: nil)
    #expect(try Data(contentsOf: room.appending(path: "out/a.txt")) == Data("hello".utf8))
  }
}
