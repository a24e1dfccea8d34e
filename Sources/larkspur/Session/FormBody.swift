import Foundation
import LarkspurIO

/// A multipart form (RFC 7578), whose length is known before the first byte of a file is read.
struct FormBody: Sendable {
  let contentType: String
  let byteCount: Int
  private let pieces: [FormStream.Piece]

  init(_ parts: [SessionOptions.Part]) throws(CommandFailure) {
    // Nobody can guess it: so no file holds it.
    let boundary = "larkspur-" + (0..<2).map { _ in String(UInt64.random(in: 0...(.max)), radix: 36) }.joined()
    contentType = "multipart/form-data; boundary=\(boundary)"
    var pieces: [FormStream.Piece] = []
    for part in parts {
      let content = try Self.content(of: part)
      let head = try Self.head(of: part)
      pieces += [.bytes(Array("--\(boundary)\r\n\(head)\r\n".utf8)), content, .bytes(Array("\r\n".utf8))]
    }
    pieces.append(.bytes(Array("--\(boundary)--\r\n".utf8)))
    self.pieces = pieces
    byteCount = pieces.reduce(0) { $0 + $1.count }
  }

  /// From the beginning: a redirection or a challenge may want it once more.
  func stream() -> InputStream { FormStream(pieces) }

  private static func head(of part: SessionOptions.Part) throws(CommandFailure) -> String {
    var line = "Content-Disposition: form-data; name=\"\(quoted(part.name))\""
    var type = part.type
    if case .file(let path) = part.content {
      let ownName = path == "-" ? "-" : path.split(separator: "/").last.map(String.init) ?? path
      line += "; filename=\"\(quoted(part.fileName ?? ownName))\""
      type = type ?? "application/octet-stream"
    }
    guard let type else { return line + "\r\n" }
    guard type.utf8.allSatisfy({ (0x20..<0x7f).contains($0) }) else {
      throw CommandFailure(.usage, "the type \(type.debugDescription) cannot stand in a field")
    }
    return line + "\r\nContent-Type: \(type)\r\n"
  }

  /// As browsers do it (the HTML standard, multipart/form-data): these would end the name, or the field.
  private static func quoted(_ name: String) -> String {
    name.replacing("\r", with: "%0D").replacing("\n", with: "%0A").replacing("\r\n", with: "%0D%0A")
      .replacing("\"", with: "%22")
  }

  private static func content(of part: SessionOptions.Part) throws(CommandFailure) -> FormStream.Piece {
    switch part.content {
    case .text(let text): return .bytes(Array(text.utf8))
    case .file("-"):
      do throws(Errno) {
        return .bytes(try OpenFile.standardInput.readToEnd())
      } catch {
        throw CommandFailure(.readFailed, "could not read standard input: \(error)")
      }
    case .file(let path):
      do throws(Errno) {
        guard case .regularFile = try FilePaths.kind(of: path) else {
          throw try FilePaths.kind(of: path) == nil ? .noSuchFile : .invalidArgument
        }
        return .file(path, count: try OpenFile(reading: path).size(by: LinuxKernel.shared))
      } catch {
        throw CommandFailure(.readFailed, "could not read \(path): \(error)")
      }
    }
  }
}
