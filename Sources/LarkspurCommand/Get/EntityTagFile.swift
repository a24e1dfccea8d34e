import Foundation
import Larkspur
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// The file of `--etag-file`: the entity tag of the version that is there already, in curl's form.
///
/// Invariant: the file names no version that is not there. It gets the new tag when the new version has its name.
final class EntityTagFile {
  private let path: String
  /// The tag of the version that is there, or `nil` if there is none.
  private let tag: String?
  /// The tag of the response, or `nil` if there is nothing to save.
  private var newTag: String?

  private static let bytesMax = 1 << 10

  /// Reads the file. Returns `nil` if the option is not given.
  ///
  /// - Parameter output: The file that has the version, or `nil` for standard output.
  init?(_ options: GetOptions, for output: String?) throws(CommandFailure) {
    guard let path = options.etagFile else { return nil }
    self.path = path
    do throws(Errno) {
      guard try FilePaths.kind(of: path) != nil, let bytes = try OpenFile(reading: path).readToEnd(max: Self.bytesMax)
      else {
        tag = nil
        return
      }
      // What no field can have is no tag, and the version is loaded.
      let line = bytes.split(whereSeparator: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }).first ?? []
      let text = line.allSatisfy { 0x20..<0x7f ~= $0 } ? String(decoding: line, as: UTF8.self) : ""
      // Without the file its version has to be loaded.
      let isThere = if let output { (try? FilePaths.kind(of: output)) != nil } else { true }
      tag = isThere && !text.isEmpty ? text : nil
    } catch {
      throw CommandFailure(.readFailed, "could not read \(path): \(error)")
    }
  }

  /// The field that asks for another version than the one that is there (RFC 9110 13.1.2).
  var condition: FieldList { tag.map { [Field("If-None-Match", $0)] } ?? [] }

  /// Takes a response's head.
  ///
  /// - Returns: Whether the version that is there is the current one.
  func take(_ response: HTTPURLResponse) -> Bool {
    let isUnchanged = response.statusCode == 304 && tag != nil
    newTag = 200..<300 ~= response.statusCode ? response.value(forHTTPHeaderField: "ETag") ?? "" : nil
    return isUnchanged
  }

  /// Writes the tag of the new version, or an empty file if the server has sent no tag.
  func save(until deadline: Deadline) throws(CommandFailure) {
    guard let newTag, newTag != tag else { return }
    let file = try FileOutput(path: path, deadline: deadline)
    do throws(CommandFailure) {
      try file.write(Array((newTag.isEmpty ? "" : newTag + "\n").utf8).span)
      try file.commit()
    } catch {
      file.abandon()
      throw error
    }
  }
}
