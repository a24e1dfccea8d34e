import LarkspurTLS
import LarkspurTransport
import Synchronization

/// Makes a client's TLS context when the first secure connection needs it, in a detached task: parsing the system's
/// roots takes up to 40 ms. All clients with standard trust settings and equal TLS versions share one context, so that
/// a client for each request costs no more.
///
/// If the context cannot be made, the connections that wait for it fail. The next connection tries again, because a
/// shortage, such as one of memory, may be over by then. An unusable file of roots is no such failure: `TrustStore`
/// reads the file again.
package final class TLSProvider: Sendable {
  private typealias Making = Task<Result<Security, TLSError>, Never>

  /// The key of a shared context, or `nil` for a context that belongs to this provider.
  private let sharedKey: SharedKey?
  private let make: @Sendable () throws(TLSError) -> Security
  private let made = Mutex<Making?>(nil)

  /// The contexts of clients with standard trust settings.
  private static let shared = Mutex<[SharedKey: Making]>([:])

  private struct SharedKey: Hashable {
    var minimum: TLSVersion
    var maximum: TLSVersion
    var rootPlaces: RootPlaces?
  }

  /// - Parameters:
  ///   - isShareable: Whether the configuration has standard trust settings: all clients whose TLS versions and roots are
  ///     equal may then share its context.
  ///   - make: Makes the context, on another thread than the loop's.
  package init(
    _ configuration: TLSConfiguration, isShareable: Bool, make: @escaping @Sendable () throws(TLSError) -> Security
  ) {
    sharedKey =
      isShareable
      ? SharedKey(
        minimum: configuration.minimumVersion, maximum: configuration.maximumVersion,
        rootPlaces: configuration.rootPlaces) : nil
    self.make = make
  }

  package func security() async throws(TLSError) -> Security {
    let making = withMaking { making in
      if let making { return making }
      let new = makeDetached()
      making = new
      return new
    }
    switch await making.value {
    case .success(let security): return security
    case .failure(let error):
      // Another caller may have started a new attempt meanwhile; only the failed attempt is removed.
      withMaking { if $0 == making { $0 = nil } }
      throw error
    }
  }

  private func withMaking<T: Sendable>(_ body: (inout Making?) -> T) -> T {
    guard let sharedKey else { return made.withLock { body(&$0) } }
    return Self.shared.withLock { body(&$0[sharedKey]) }
  }

  private func makeDetached() -> Making {
    let make = make
    return Task.detached {
      do throws(TLSError) {
        return .success(try make())
      } catch {
        return .failure(error)
      }
    }
  }
}
