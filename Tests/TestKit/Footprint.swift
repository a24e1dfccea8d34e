import Foundation

/// What this process holds of the machine.
package struct Footprint: Sendable {
  package var residentKiB: Int
  package var descriptors: Int

  /// At present.
  package static func now() -> Footprint {
    Footprint(residentKiB: residentKiB, descriptors: descriptors)
  }

  private static var residentKiB: Int {
    let text = FileManager.default.contents(atPath: "/proc/self/smaps_rollup") ?? Data()
    let line = String(decoding: text, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("Rss:") }
    return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
  }

  /// The one that the folder is read by is among them, always.
  private static var descriptors: Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
  }
}
