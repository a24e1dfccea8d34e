import Foundation
import TestKit
import Testing

/// What forms take of the memory, seen in a process of their own.
@Suite struct MultipartFootprintTests {
  /// KiB.
  static let residentMax = 64 << 10

  /// Neither the size of a file nor how many are sent at a time counts for much.
  @Test(arguments: [(1, 50), (100, 4)])
  func formsFromFilesTakeLittle(count: Int, mebibytes: Int) async throws {
    let process = try SiblingProcess("MultipartFootprint", ["\(count)", "\(mebibytes)"])
    let numbers = try await process.numbersLater()
    try #require(numbers.count == 2)
    #expect(numbers[0] == count)
    #expect(numbers[1] < Self.residentMax)
  }
}

extension SiblingProcess {
  /// As `numbers()`, and no thread of Swift's waits.
  fileprivate func numbersLater() async throws -> [Int] {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result { try self.numbers() }) }
    }
  }
}
