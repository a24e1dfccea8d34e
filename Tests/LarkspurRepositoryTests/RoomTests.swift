import Foundation
import Testing

/// The folders of the sources: a reader finds the room of a change, and its tests, by name.
@Suite struct RoomTests {
  /// The folders below a module that contain Swift files.
  static let rooms: [String] = {
    let directories = Set(Repository.files(under: "Sources").map(\.directory))
    return directories.filter { $0.split(separator: "/").count > 2 }.sorted()
  }()

  @Test func pathsDifferByMoreThanCase() {
    var paths: Set<String> = []
    for directory in ["Sources", "Tests", "Fuzz", "Benchmarks", "Examples"] {
      let base = Repository.root.appending(path: directory).path
      for case let path as String in FileManager.default.enumerator(atPath: base) ?? .init() {
        paths.insert(directory + "/" + path)
      }
    }
    #expect(paths.count > 1_000)
    for (_, same) in Dictionary(grouping: paths, by: { $0.lowercased() }) where same.count > 1 {
      Issue.record("\(same.sorted())")
    }
  }

  /// `Sources/Module/Folder` has its tests in `Tests/ModuleTests/Folder`.
  @Test func foldersHaveTheirTests() {
    let without = Self.rooms.filter { room in
      let parts = room.split(separator: "/", maxSplits: 2)
      return !FileManager.default.fileExists(
        atPath: Repository.root.appending(path: "Tests/\(parts[1])Tests/\(parts[2])").path)
    }
    #expect(without.count * 100 <= Self.rooms.count * 15, "\(without)")
  }

  /// Each program is linked for each run of the tests. Fuzzers and benchmarks are built on request only.
  @Test func programsAreFew() throws {
    let data = try #require(FileManager.default.contents(atPath: Repository.root.appending(path: "Package.swift").path))
    let text = String(decoding: data, as: UTF8.self)
    let ordinary = text.components(separatedBy: "if includesBenchmarks").first ?? text
    let programs = ordinary.components(separatedBy: ".executableTarget(").count - 1
    #expect((1...8).contains(programs))
  }
}
