/// The server of a world of transfers: a resource for each task, which may get another version at any time, and the
/// uploads so far.
struct SimulatedResources {
  struct Resource {
    var validator: String
    var bytes: [UInt8]
  }

  private var versions: [Int: Int] = [:]
  /// The tasks whose upload has arrived as a whole.
  private(set) var uploads: Set<Int> = []

  func resource(of task: Int) -> Resource { resource(of: task, version: versions[task] ?? 0) }

  private func resource(of task: Int, version: Int) -> Resource {
    // No byte is zero, as those of a page that was lost are.
    let bytes = (0..<(7 * (task + version)) % 40).map { UInt8(1 + (31 * task + 17 * version + 3 * $0) % 255) }
    return Resource(validator: "\"\(version)\"", bytes: bytes)
  }

  mutating func change(_ task: Int) { versions[task, default: 0] += 1 }

  mutating func receive(_ task: Int) { uploads.insert(task) }

  /// The response to an upload.
  func answer(to task: Int) -> [UInt8] { [UInt8(task), 200, 201] }

  /// Whether the bytes are those of one version.
  func isWhole(_ bytes: [UInt8], of task: Int) -> Bool {
    (0...(versions[task] ?? 0)).contains { resource(of: task, version: $0).bytes == bytes }
  }
}
