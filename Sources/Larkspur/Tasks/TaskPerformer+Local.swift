import Foundation
import LarkspurBytes
import LarkspurIO

/// URLs that need no server.
extension TaskPerformer {
  /// False: the URL is of no kind that is known.
  func loadLocally(_ url: URL) async throws(URLError) -> Bool {
    switch url.scheme?.lowercased() {
    case "file": try await loadFile(url)
    case "data": try await loadData(url)
    default: return false
    }
    return true
  }

  private static let pieceBytes = 256 * 1024

  private func loadFile(_ url: URL) async throws(URLError) {
    let path = url.path
    let opened: Result<(OpenFile, Int), URLError> = Self.open(path)
    let (file, length) = try opened.get()
    let type = MIMETypes.type(ofFile: url.pathExtension)
    try await begin(
      URLResponse(url: url, mimeType: type, expectedContentLength: length, textEncodingName: nil), length: Int64(length)
    )
    while true {
      try await passGate()
      let piece: [UInt8]
      do throws(Errno) {
        piece = try file.read(atMost: Self.pieceBytes)
      } catch {
        throw URLError.make(.cannotOpenFile, "\(path): \(error)", url: url)
      }
      guard !piece.isEmpty else { return }
      take(piece.span)
      clock.progressed()
      try await handOver()
    }
  }

  private static func open(_ path: String) -> Result<(OpenFile, Int), URLError> {
    do throws(Errno) {
      switch try FilePaths.kind(of: path) {
      case nil: return .failure(.make(.fileDoesNotExist, "there is no file \(path)"))
      case .directory: return .failure(.make(.fileIsDirectory, "\(path) is a directory"))
      // A pipe could make us wait for ever, and a device has no end.
      case .other: return .failure(.make(.cannotOpenFile, "\(path) is no regular file"))
      case .regularFile: break
      }
      let file = try OpenFile(reading: path)
      return .success((file, try file.size(by: LinuxKernel.shared)))
    } catch {
      return .failure(
        .make(
          error == .accessDenied ? .noPermissionsToReadFile : .cannotOpenFile, "\(path): \(error)",
          underlying: NSError(domain: NSPOSIXErrorDomain, code: Int(error.rawValue))))
    }
  }

  /// RFC 2397.
  private func loadData(_ url: URL) async throws(URLError) {
    guard let (type, charset, data) = DataURL.parse(url.absoluteString) else {
      throw URLError.make(.badURL, "the data URL has no comma or is not Base64", url: url)
    }
    try await begin(
      URLResponse(url: url, mimeType: type, expectedContentLength: data.count, textEncodingName: charset),
      length: Int64(data.count))
    try await passGate()
    guard !data.isEmpty else { return }
    take([UInt8](data).span)
    try await handOver()
  }
}

/// Types of files by their names.
enum MIMETypes {
  static func type(ofFile pathExtension: String) -> String {
    switch pathExtension.lowercased() {
    case "txt", "text", "log": "text/plain"
    case "html", "htm": "text/html"
    case "json": "application/json"
    case "xml": "application/xml"
    case "css": "text/css"
    case "js": "text/javascript"
    case "csv": "text/csv"
    case "png": "image/png"
    case "jpg", "jpeg": "image/jpeg"
    case "gif": "image/gif"
    case "svg": "image/svg+xml"
    case "webp": "image/webp"
    case "pdf": "application/pdf"
    case "zip": "application/zip"
    case "gz": "application/gzip"
    case "mp4": "video/mp4"
    case "mp3": "audio/mpeg"
    default: "application/octet-stream"
    }
  }
}

enum DataURL {
  static func parse(_ text: String) -> (String?, String?, Data)? {
    guard let comma = text.firstIndex(of: ","), let colon = text.firstIndex(of: ":"), colon < comma else { return nil }
    var header = text[text.index(after: colon)..<comma].trimmingCharacters(in: .whitespaces)
    var rest = String(text[text.index(after: comma)...])
    if let hash = rest.firstIndex(of: "#") { rest = String(rest[..<hash]) }
    guard let decoded = rest.removingPercentEncoding.map({ Data($0.utf8) }) else { return nil }
    var data = decoded
    if header.lowercased().hasSuffix(";base64") {
      header = String(header.dropLast(7))
      guard let bytes = Data(base64Encoded: decoded, options: .ignoreUnknownCharacters) else { return nil }
      data = bytes
    }
    if header.isEmpty { return ("text/plain", "us-ascii", data) }
    let (type, charset) = ContentType.parse(header.hasPrefix(";") ? "text/plain" + header : header)
    return (type, charset, data)
  }
}
