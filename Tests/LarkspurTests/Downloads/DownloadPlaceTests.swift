import Foundation
import LarkspurHTTP
import Testing

@testable import Larkspur

@Suite struct DownloadPlaceTests {
  /// A file keeps its bytes while a record may name their version.
  @Test(arguments: [false, true]) func filesAreReplacedAfterTheirRecord(isForgotten: Bool) async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "larkspur-place-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: file) }
    try Data("old".utf8).write(to: file)
    let start = ResumePoint(validator: "\"1\"", offset: 3, total: nil, coding: nil)
    let place = DownloadPlace(path: file.path, start: start) { _ in
    } willReplace: {
      isForgotten
    }
    if isForgotten {
      _ = try await place.replace()
      #expect(try Data(contentsOf: file).isEmpty)
    } else {
      await #expect(throws: URLError.self) { try await place.replace() }
      #expect(try Data(contentsOf: file) == Data("old".utf8))
    }
  }
}
