import Dispatch
import Foundation
@_spi(SwiftCorelibsFoundation) import FoundationEssentials
import LarkspurTransport

// Foundation loads files by itself, and has all other URLs loaded by whoever replaces one of its functions, as
// FoundationNetworking does. That function is for Foundation's own libraries: a toolchain that has not been seen to have it
// goes without, rather than that the programs of its users do not build. A test tells when one is to be added.
#if compiler(>=6.3) && compiler(<6.4)
  extension Data {
    /// What `Data(contentsOf:)` and `String(contentsOf:)` do for a URL that is no file's.
    @_dynamicReplacement(for:init(_contentsOfRemote:options:))
    private init(contentsOfURL url: URL, options: ReadingOptions = []) throws {
      self = try RemoteContents.load(url).data
    }
  }
#endif

/// The contents of a URL, for a thread that waits for them.
package enum RemoteContents {
  /// It has a delegate queue to itself: who waits may be a handler on the queue of another session.
  static let session = URLSession(configuration: .default)

  /// Follows FoundationNetworking: an error's status is an error, but for the ones that ask for credentials. What has gone
  /// wrong is the underlying error of `CocoaError.fileReadUnknown`, for a status `URLError.badServerResponse`.
  package static func load(_ url: URL) throws -> (data: Data, textEncodingName: String?) {
    // The loop's thread would wait for itself.
    if let loop = try session.core.engine()?.loop, loop.isCurrent {
      throw unread(url, URLError.make(.cannotLoadFromNetwork, "a session's executor cannot wait for a load", url: url))
    }
    let (done, result) = (DispatchSemaphore(value: 0), Handover<Result<(Data, URLResponse?), any Error>>())
    let task = session.dataTask(with: url) { data, response, error in
      result.value = if let error { .failure(error) } else { .success((data ?? Data(), response)) }
      done.signal()
    }
    task.resume()
    done.wait()
    switch result.value {
    case .success(let (data, response))?:
      let contents = (data, response?.textEncodingName)
      guard let status = (response as? HTTPURLResponse)?.statusCode else { return contents }
      switch status {
      case 200...399, 401, 407: return contents
      default: throw unread(url, URLError.make(.badServerResponse, "the server answered \(status)", url: url))
      }
    case .failure(let error)?: throw unread(url, error)
    case nil: throw unread(url, URLError.make(.unknown, url: url))
    }
  }

  private static func unread(_ url: URL, _ error: any Error) -> CocoaError {
    CocoaError(.fileReadUnknown, userInfo: [NSURLErrorKey: url, NSUnderlyingErrorKey: error])
  }
}
