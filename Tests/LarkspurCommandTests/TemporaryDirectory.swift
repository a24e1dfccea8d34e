import Foundation
import LarkspurIO
import TestKit

extension TemporaryDirectory {
  var path: String { url.path }

  /// The names of the directory's entries, sorted.
  var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

  func write(_ text: String, to name: String) throws {
    try OpenFile(creating: path(name)).write(text)
  }

  func write(_ bytes: [UInt8], to name: String) throws {
    try OpenFile(creating: path(name)).write(bytes.span)
  }

  func text(of name: String) throws -> String {
    String(decoding: try bytes(of: name), as: UTF8.self)
  }

  func bytes(of name: String) throws -> [UInt8] { try OpenFile(reading: path(name)).readToEnd() }
}
