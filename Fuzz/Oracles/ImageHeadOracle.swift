import AFNetworking

/// Checks the reader of image heads on any bytes that a server could send.
package enum ImageHeadOracle {
  /// Reads the head of the bytes and of each of their prefixes, and compares them.
  ///
  /// - Returns: A difference, or `nil` if there is none.
  package static func finding(in input: [UInt8]) -> String? {
    let whole = read(input[...])
    if case .success(let head) = whole {
      guard head.width > 0, head.height > 0, max(head.width, head.height) <= ImageHead.sideMax,
        head.width * head.height <= AFImage.pixelCountMaxDefault, 1...8 ~= head.orientation.exif
      else { return "beyond the limits: \(head)" }
    }
    var turned: ImageOrientation?
    for count in 0..<input.count {
      let part = read(input.prefix(count))
      switch (part, whole) {
      case (.failure(.truncated), _): break
      case (.success(let part), .success(let head)):
        guard part.format == head.format, part.width == head.width, part.height == head.height else {
          return "\(count) bytes: \(part), all: \(head)"
        }
        // Only a known orientation replaces the unknown one.
        let isTurned = part.orientation != ImageOrientation()
        if let turned, part.orientation != turned { return "\(count) bytes: \(part), fewer: \(turned)" }
        if isTurned { turned = part.orientation }
        if isTurned, head.orientation != part.orientation { return "\(count) bytes: \(part), all: \(head)" }
      case (.failure(let part), .failure(let error)) where part == error: break
      default: return "\(count) bytes: \(part), all: \(whole)"
      }
    }
    return nil
  }

  private static func read(_ bytes: ArraySlice<UInt8>) -> Result<ImageHead, AFImageError> {
    let bytes = Array(bytes)
    do throws(AFImageError) {
      return .success(try ImageHead.read(bytes.span))
    } catch {
      return .failure(error)
    }
  }
}
