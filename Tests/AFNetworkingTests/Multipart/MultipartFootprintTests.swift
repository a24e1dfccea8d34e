import Foundation
import TestKit
import Testing

/// Tests the memory that forms use, in a process of their own.
@Suite struct MultipartFootprintTests {
  /// The limit for the highest resident size of the sending process, in KiB.
  static let residentMax = 64 << 10

  /// The memory depends little on the size of a file and on the number of forms sent at once.
  @Test(arguments: [(1, 50), (100, 4)])
  func formsFromFilesTakeLittle(count: Int, mebibytes: Int) async throws {
    let process = try SiblingProcess("multipart-footprint", ["\(count)", "\(mebibytes)"])
    let numbers = try await process.numbersLater()
    try #require(numbers.count == 2)
    #expect(numbers[0] == count)
    #expect(numbers[1] < Self.residentMax)
  }
}

extension SiblingProcess {
  /// Returns `numbers()` without blocking a thread of Swift's pool.
  fileprivate func numbersLater() async throws -> [Int] {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result { try self.numbers() }) }
    }
  }
}
