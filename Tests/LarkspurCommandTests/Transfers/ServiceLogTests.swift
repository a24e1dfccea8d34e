import Foundation
import Testing

@testable import LarkspurCommand

struct ServiceLogTests {
  /// A temporary directory. Deinitialization removes it.
  private final class Place {
    let path = FileManager.default.temporaryDirectory.path + "/lk-\(UUID().uuidString.prefix(8))"

    deinit { try? FileManager.default.removeItem(atPath: path) }
  }

  /// A service that finds another one running writes to the log of that one, and ends.
  @Test func twoServicesWrite() throws {
    let place = Place()
    let (first, second) = (
      try ServiceLog(directory: place.path, now: { 0 }), try ServiceLog(directory: place.path, now: { 0 })
    )
    first.add("one")
    second.add("two")
    first.add("three")
    let time = "1970-01-01 00:00:00"
    #expect(try first.text() == "\(time) one\n\(time) two\n\(time) three\n")
    let attributes = try FileManager.default.attributesOfItem(atPath: "\(place.path)/\(ServiceLog.name)")
    #expect(attributes[.posixPermissions] as? Int == 0o600)
  }

  @Test func twoFilesAtMost() throws {
    let place = Place()
    let log = try ServiceLog(directory: place.path, now: { 0 })
    let line = String(repeating: "a", count: ServiceLog.lineBytesMax)
    for number in 0..<600 { log.add("\(number) " + line) }
    // A log that was full before this process begins a new file, too.
    try ServiceLog(directory: place.path, now: { 0 }).add("last")
    let text = try log.text()
    #expect(text.hasSuffix(" last\n"))
    #expect(!text.contains(" 0 a") && text.contains(" 599 a"))
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: place.path).sorted() == [ServiceLog.name, ServiceLog.earlier])
    #expect(text.utf8.count <= 2 * (ServiceLog.bytesMax + ServiceLog.lineBytesMax))
  }
}
