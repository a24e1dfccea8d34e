import Foundation
import Larkspur

/// Loads URLs for `NSData(contentsOf:)` and `NSString(contentsOf:encoding:)`. Foundation looks for a class of this name
/// in a module of this name, and ends the process if there is none.
final class _NSNonfileURLContentLoader: _NSNonfileURLContentLoading, Sendable {
  init() {}

  func contentsOf(url: URL) throws -> (result: NSData, textEncodingNameIfAvailable: String?) {
    let contents = try RemoteContents.load(url)
    return (contents.data as NSData, contents.textEncodingName)
  }
}
