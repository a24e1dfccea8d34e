import Dispatch
import Foundation
@_spi(SwiftCorelibsFoundation) import FoundationEssentials
import LarkspurBytes
import LarkspurTransport

// Foundation loads files itself, and loads other URLs by a function that another module replaces, as
// FoundationNetworking does. The function is meant for Foundation's own libraries. A toolchain that is not known to
// have it gets no replacement, so that programs still build. A test reports when a toolchain has to be added.
#if compiler(>=6.3) && compiler(<6.4)
  extension Data {
    /// Loads a URL that is no file's for `Data(contentsOf:)` and `String(contentsOf:)`.
    @_dynamicReplacement(for:init(_contentsOfRemote:options:))
    private init(contentsOfURL url: URL, options: ReadingOptions = []) throws {
      self = try RemoteContents.load(url).data
    }
  }
#endif

/// Loads the contents of a URL for a thread that blocks until they have arrived.
package enum RemoteContents {
  /// The session of these loads. It has a private delegate queue, because the blocked thread may be running a handler
  /// on the queue of another session.
  static let session = URLSession(configuration: .default)

  /// Returns the contents of a URL.
  ///
  /// As in FoundationNetworking, an error status throws, except 401 and 407, which ask for credentials.
  ///
  /// - Throws: `CocoaError.fileReadUnknown`. Its underlying error is the failure, which is `URLError.badServerResponse`
  ///   for a status.
  package static func load(_ url: URL) throws -> (data: Data, textEncodingName: String?) {
    // A blocked loop's thread would wait for itself.
    if let loop = try session.core.engine()?.loop, loop.isCurrent {
      throw unread(url, URLError.make(.cannotLoadFromNetwork, "a session's executor cannot wait for a load", url: url))
    }
    let (done, result) = (DispatchSemaphore(value: 0), OneShot<Result<(Data, URLResponse?), any Error>>())
    let task = session.dataTask(with: url) { data, response, error in
      result.set(error.map { .failure($0) } ?? .success((data ?? Data(), response)))
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
