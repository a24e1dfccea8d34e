import Foundation

/// The memory and the descriptors that this process holds.
package struct Footprint: Sendable {
  package var residentKiB: Int
  package var descriptors: Int

  /// Measures the present footprint.
  package static func now() -> Footprint {
    Footprint(residentKiB: residentKiB, descriptors: descriptors)
  }

  private static var residentKiB: Int {
    let text = FileManager.default.contents(atPath: "/proc/self/smaps_rollup") ?? Data()
    let line = String(decoding: text, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("Rss:") }
    return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
  }

  /// Number of entries in /proc/self/fd, which always include the descriptor that reads the directory.
  private static var descriptors: Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
  }
}
