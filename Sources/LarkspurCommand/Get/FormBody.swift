import Foundation
import Larkspur
import LarkspurHTTP
import LarkspurIO

/// Content that is read while it is sent: a multipart form (RFC 7578), or the data of `-d` with a large file. Its length
/// is known before the first byte of a file is read.
struct FormBody: Sendable {
  /// The value of `Content-Type`, or `nil` if the request has its own.
  let contentType: String?
  private let body: SegmentedBody

  var byteCount: Int { Int(clamping: body.count) }

  /// - Parameter type: The value of `Content-Type` from `-H`. If it has a boundary (RFC 2046, section 5.1.1), the form
  ///   uses that one; otherwise a new boundary is appended, as by curl.
  init(_ parts: [SessionOptions.Part], type: String? = nil) throws(CommandFailure) {
    let type = type ?? "multipart/form-data"
    let own = type.firstMatch(of: /(?i);\s*boundary="?([-0-9A-Za-z'()+_,.\/:=? ]{0,69}[-0-9A-Za-z'()+_,.\/:=?])/)?.1
    // The boundary is random, so that no file contains it.
    let boundary =
      own.map(String.init)
      ?? "larkspur-" + (0..<2).map { _ in String(UInt64.random(in: 0...(.max)), radix: 36) }.joined()
    contentType = own == nil ? "\(type); boundary=\(boundary)" : type
    body = SegmentedBody(
      boundary: boundary,
      parts: try parts.map { part throws(CommandFailure) in
        (Array("\(try Self.head(of: part))\r\n".utf8), try Self.content(of: part))
      })
  }

  /// Data whose files together have no more bytes is read into memory, where it can be sent again and hashed.
  static let heldBytesMax = 1 << 20

  /// Creates the content of `-d`, or returns `nil` if it has no large regular file: then the caller reads it into memory.
  init?(_ data: [GetOptions.Data], separator: String) throws(CommandFailure) {
    var files: [Int: BodySegment] = [:]
    for (index, part) in data.enumerated() {
      guard case .file(let path) = part, path != "-", case .regularFile? = try? FilePaths.kind(of: path) else {
        continue
      }
      files[index] = try Self.content(of: path)
    }
    guard files.values.reduce(0, { $0 + $1.count }) > Self.heldBytesMax else { return nil }
    var segments: [BodySegment] = []
    for (index, part) in data.enumerated() {
      if index > 0 { segments.append(.bytes(Array(separator.utf8))) }
      if let file = files[index] { segments.append(file) } else { segments.append(.bytes(try part.bytes())) }
    }
    contentType = nil
    body = SegmentedBody(segments: segments)
  }

  /// Returns a new stream of the body from its beginning. A redirection or a challenge may need a second stream.
  func stream() -> InputStream { SegmentedBodyStream(body) }

  /// Returns the fields of a part. As in curl, `;type=` overrides `;headers=`, and that overrides the default fields.
  private static func head(of part: SessionOptions.Part) throws(CommandFailure) -> String {
    var disposition = "form-data; name=\"\(SegmentedBody.escaped(part.name))\""
    var fileName = part.fileName
    var type = part.type
    if case .file(let path) = part.content {
      fileName = fileName ?? FilePaths.name(of: path)
      type = type ?? "application/octet-stream"
    }
    if let fileName { disposition += "; filename=\"\(SegmentedBody.escaped(fileName))\"" }
    var fields: FieldList = [.init("Content-Disposition", disposition)]
    if let type {
      guard type.utf8.allSatisfy({ (0x20..<0x7f).contains($0) }) else {
        throw CommandFailure(.usage, "the type \(type.debugDescription) cannot stand in a field")
      }
      fields.append(.init("Content-Type", type))
    }
    var own = part.fields
    if part.type != nil { own.removeAll(named: "Content-Type") }
    fields.removeAll { own.contains(named: $0.name) }
    return (fields + own).map { "\($0.name): \($0.value)\r\n" }.joined()
  }

  private static func content(of part: SessionOptions.Part) throws(CommandFailure) -> BodySegment {
    switch part.content {
    case .text, .file("-"): return .bytes(try part.content.bytes())
    case .file(let path): return try content(of: path)
    }
  }

  private static func content(of path: String) throws(CommandFailure) -> BodySegment {
    do throws(Errno) {
      let count = Int64(try OpenFile(readingRegular: path).byteCount())
      // A URL of a name that begins with `~` would be that of a user's directory.
      return .file(URL(filePath: try FilePaths.resolved(path)), count: count)
    } catch {
      throw CommandFailure(.readFailed, "could not read \(path): \(error)")
    }
  }
}
