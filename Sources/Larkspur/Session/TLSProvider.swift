import Foundation
import LarkspurTLS
import LarkspurTransport
import Synchronization

/// Makes a session's TLS context when the first secure connection needs it, in a detached task: parsing the system's
/// roots takes up to 40 ms. All sessions with standard trust settings and equal TLS versions share one context, so that
/// a session for each request costs no more.
///
/// If the context cannot be made, the connections that wait for it fail. The next connection tries again, because a
/// shortage, such as one of memory, may be over by then. An unusable file of roots is no such failure: `TrustStore`
/// reads the file again.
final class TLSProvider: Sendable {
  private typealias Making = Task<Result<Security, TLSError>, Never>

  private let configuration: TLSConfiguration
  private let isShareable: Bool
  private let mismatchReport: (@Sendable (PinMismatch) -> Void)?
  private let fileFailed: (@Sendable (String, String) -> Void)?
  private let made = Mutex<Making?>(nil)

  /// The contexts of sessions with standard trust settings.
  private static let shared = Mutex<[SharedKey: Making]>([:])

  private struct SharedKey: Hashable {
    var minimum: TLSVersion
    var maximum: TLSVersion
    var rootPlaces: RootPlaces?
  }

  init(_ storage: URLSessionConfiguration.Storage) {
    var configuration = TLSConfiguration()
    configuration.minimumVersion = storage.settings.tlsMinimum.version
    configuration.maximumVersion = storage.settings.tlsMaximum.version
    isShareable = storage.trust.isStandard
    mismatchReport = storage.trust.mismatchReport
    fileFailed = storage.trust.fileFailed
    storage.trust.apply(to: &configuration)
    self.configuration = configuration
  }

  func security() async throws(URLError) -> Security {
    let making = withMaking { making in
      if let making { return making }
      let new = make()
      making = new
      return new
    }
    switch await making.value {
    case .success(let security): return security
    case .failure(let error):
      // Another caller may have started a new attempt meanwhile; only the failed attempt is removed.
      withMaking { if $0 == making { $0 = nil } }
      throw URLError(.tls(error), url: nil)
    }
  }

  private func withMaking<T: Sendable>(_ body: (inout Making?) -> T) -> T {
    guard isShareable else { return made.withLock { body(&$0) } }
    let key = SharedKey(
      minimum: configuration.minimumVersion, maximum: configuration.maximumVersion,
      rootPlaces: configuration.rootPlaces)
    return Self.shared.withLock { body(&$0[key]) }
  }

  private func make() -> Making {
    let (configuration, mismatchReport, fileFailed) = (configuration, mismatchReport, fileFailed)
    return Task.detached {
      do throws(TLSError) {
        return .success(
          try Security(configuration, pinMismatched: mismatchReport, fileFailed: fileFailed))
      } catch {
        return .failure(error)
      }
    }
  }
}
