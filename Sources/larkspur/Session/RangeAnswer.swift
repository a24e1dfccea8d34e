import Foundation
import Larkspur

/// What the answer to a range that goes on behind a file says (RFC 9110 14 and 15.5.17).
enum RangeAnswer: Equatable {
  /// The bytes behind the file's.
  case rest
  /// The file has them all.
  case complete
  /// The server does not look at ranges.
  case whole
  case another(String)
  /// Neither: an error's page, or a redirection that is not followed.
  case other

  init(_ response: HTTPURLResponse, offset: Int) {
    let said = response.value(forHTTPHeaderField: "Content-Range") ?? ""
    switch response.statusCode {
    case 206:
      self =
        said.lowercased().hasPrefix("bytes \(offset)-")
        ? .rest : .another("the server sends \(said.isEmpty ? "no range" : said)")
    // RFC 9110 15.3.4: the whole, as somebody on the way has changed it.
    case 200, 203: self = .whole
    case 416 where said.lowercased() == "bytes */\(offset)": self = .complete
    case 416: self = .another("the server has other bytes: \(said.isEmpty ? "416" : said)")
    default: self = .other
    }
  }
}
