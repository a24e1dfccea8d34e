import Foundation
import LarkspurTLS
import LarkspurTransport
import Synchronization

/// Makes a session's TLS context when the first secure connection is wanted, on a thread that may wait: the system's roots
/// take up to 40 ms to read. Sessions with the same settings share one, so that a session for each request costs no more.
///
/// A context that cannot be made fails the connections that wait for it. The next connection tries again: what was missing, such as
/// memory, may be there then. A file of roots that cannot be used is no such failure: `TrustStore` reads it again.
final class TLSProvider: Sendable {
  private typealias Making = Task<Result<Security, TLSError>, Never>

  private let configuration: TLSConfiguration
  private let isShareable: Bool
  private let mismatchReport: (@Sendable (PinMismatch) -> Void)?
  private let made = Mutex<Making?>(nil)

  /// Of the sessions that set nothing of their own.
  private static let shared = Mutex<[SharedKey: Making]>([:])

  private struct SharedKey: Hashable {
    var minimum: TLSVersion
    var maximum: TLSVersion
  }

  init(_ storage: URLSessionConfiguration.Storage) {
    var configuration = TLSConfiguration()
    configuration.minimumVersion = storage.tlsMinimum.version
    configuration.maximumVersion = storage.tlsMaximum.version
    isShareable = storage.trust.isStandard
    mismatchReport = storage.trust.mismatchReport
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
      // Somebody may have begun anew meanwhile.
      withMaking { if $0 == making { $0 = nil } }
      throw URLError(.tls(error), url: nil)
    }
  }

  private func withMaking<T: Sendable>(_ body: (inout Making?) -> T) -> T {
    guard isShareable else { return made.withLock { body(&$0) } }
    let key = SharedKey(minimum: configuration.minimumVersion, maximum: configuration.maximumVersion)
    return Self.shared.withLock { body(&$0[key]) }
  }

  private func make() -> Making {
    let (configuration, mismatchReport) = (configuration, mismatchReport)
    return Task.detached {
      do throws(TLSError) {
        return .success(Security(try TLSContext(configuration, pinMismatched: mismatchReport)))
      } catch {
        return .failure(error)
      }
    }
  }
}
