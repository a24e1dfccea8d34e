import Foundation
import LarkspurTLS
import LarkspurTransport
import Synchronization

/// Makes a session's TLS context when the first secure connection is wanted, on a thread that may wait: the system's roots
/// take up to 40 ms to read. Sessions with the same settings share one, so that a session for each request costs no more.
final class TLSProvider: Sendable {
  private let configuration: TLSConfiguration
  private let isShareable: Bool
  private let mismatchReport: (@Sendable (PinMismatch) -> Void)?
  private let made = Mutex<Task<Result<Security, TLSError>, Never>?>(nil)

  /// Of the sessions that set nothing of their own.
  private static let shared = Mutex<[SharedKey: Task<Result<Security, TLSError>, Never>]>([:])

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
    let task = isShareable ? sharedTask() : ownTask()
    switch await task.value {
    case .success(let security): return security
    case .failure(let error): throw URLError(.tls(error), url: nil)
    }
  }

  private func ownTask() -> Task<Result<Security, TLSError>, Never> {
    made.withLock { made in
      if let made { return made }
      let task = make()
      made = task
      return task
    }
  }

  private func sharedTask() -> Task<Result<Security, TLSError>, Never> {
    let key = SharedKey(minimum: configuration.minimumVersion, maximum: configuration.maximumVersion)
    return Self.shared.withLock { tasks in
      if let task = tasks[key] { return task }
      let task = make()
      tasks[key] = task
      return task
    }
  }

  private func make() -> Task<Result<Security, TLSError>, Never> {
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
