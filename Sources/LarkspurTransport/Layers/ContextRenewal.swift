import LarkspurBytes
import LarkspurIO
import LarkspurTLS
import Synchronization

/// The TLS context of a configuration whose client identity or roots are in files.
///
/// A new connection looks at the files if the kernel has noted a change in their directories, or if the last look is a
/// second ago: some file systems, such as NFS, note nothing. New content makes a new context, with no TLS sessions of the
/// earlier one: they are bound to the earlier identity and roots. Existing connections keep the context that they have.
/// If the new content cannot be used, the earlier context stays, and later looks try again.
final class ContextRenewal: Sendable {
  /// Minimum time between two looks without a note of the kernel.
  private static let interval = Duration.seconds(1)

  /// A file that cannot be used.
  struct Failure: Error, Hashable {
    var path: String
    var error: TLSError
    var reason: String

    init(_ path: String, _ error: TLSError, reason: String? = nil) {
      self.path = path
      self.error = error
      self.reason = reason ?? "\(error)"
    }
  }

  private struct State {
    var context: TLSContext
    /// The digests of the files that `context` was made from.
    var digests: [[UInt8]]
    var nextLook = Deadline(nanoseconds: 0)
    var look: Task<Void, Never>?
    /// The latest failure, which is reported once.
    var failure: Failure?
  }

  private let configuration: TLSConfiguration
  private let pinMismatched: (@Sendable (PinMismatch) -> Void)?
  private let fileFailed: (@Sendable (_ path: String, _ reason: String) -> Void)?
  private let watch: ChangeWatch?
  private let state: Mutex<State>

  /// Reads the files and creates the first context. An identity that cannot be read again keeps the content that it has.
  init(
    _ configuration: TLSConfiguration, pinMismatched: (@Sendable (PinMismatch) -> Void)?,
    fileFailed: (@Sendable (_ path: String, _ reason: String) -> Void)?
  ) throws(TLSError) {
    self.configuration = configuration
    self.pinMismatched = pinMismatched
    self.fileFailed = fileFailed
    // The watch starts before the files are read, so that no change is missed.
    watch = try? ChangeWatch(files: configuration.filePaths)
    do throws(Failure) {
      let contents = try configuration.fileContents()
      let context = try Self.context(configuration.reading(contents), pinMismatched)
      state = Mutex(State(context: context, digests: contents.map(SHA256Digest.of)))
    } catch {
      guard configuration.rootFiles.isEmpty else { throw error.error }
      state = Mutex(State(context: try TLSContext(configuration, pinMismatched: pinMismatched), digests: []))
    }
  }

  /// The context for a new connection.
  var context: TLSContext { state.withLock { $0.context } }

  /// Returns the look at the files that a new connection has to await, or `nil` if `context` is up to date.
  func look(at now: Deadline) -> Task<Void, Never>? {
    state.withLock { state in
      if let look = state.look { return look }
      let isChanged = watch?.takeChanges() == true
      guard isChanged || now >= state.nextLook else { return nil }
      state.nextLook = now.advanced(by: Self.interval)
      state.look = Task.detached { [self] in renew() }
      return state.look
    }
  }

  private func renew() {
    do throws(Failure) {
      let contents = try configuration.fileContents()
      let digests = contents.map(SHA256Digest.of)
      if state.withLock({ $0.digests == digests }) { return finish { $0.failure = nil } }
      let context = try Self.context(configuration.reading(contents), pinMismatched)
      finish { $0 = State(context: context, digests: digests, nextLook: $0.nextLook) }
    } catch {
      let isNew = state.withLock { $0.failure != error }
      if isNew { fileFailed?(error.path, error.reason) }
      finish { $0.failure = error }
    }
  }

  private func finish(_ change: (inout State) -> Void) {
    state.withLock { state in
      change(&state)
      state.look = nil
    }
  }

  private static func context(
    _ configuration: TLSConfiguration, _ pinMismatched: (@Sendable (PinMismatch) -> Void)?
  ) throws(Failure) -> TLSContext {
    do throws(TLSError) {
      return try TLSContext(configuration, pinMismatched: pinMismatched)
    } catch {
      throw Failure(configuration.filePaths.first ?? "", error)
    }
  }
}

extension TLSConfiguration {
  /// The paths of all files: those of the identity, and then those of roots.
  var filePaths: [String] { (identity?.files?.paths ?? []) + rootFiles }

  /// The contents of the files, in the order of `filePaths`.
  func fileContents() throws(ContextRenewal.Failure) -> [[UInt8]] {
    var contents: [[UInt8]] = []
    for path in identity?.files?.paths ?? [] { contents.append(try read(path, .identityUnreadable)) }
    for path in rootFiles { contents.append(try read(path, .trustStoreUnreadable)) }
    return contents
  }

  /// Returns the configuration with the identity and the roots that stand in the files.
  func reading(_ contents: [[UInt8]]) throws(ContextRenewal.Failure) -> TLSConfiguration {
    var result = self
    var roots = contents[...]
    if let files = identity?.files {
      roots = contents.dropFirst(files.paths.count)
      do throws(TLSError) {
        result.identity = try ClientIdentity(
          contents: contents.prefix(files.paths.count), password: files.password)
        result.identity?.files = files
      } catch {
        throw ContextRenewal.Failure(files.certificates, error)
      }
    }
    for (path, bytes) in zip(rootFiles, roots) {
      guard let certificates = Certificate.read(bytes) else {
        throw ContextRenewal.Failure(path, TLSError(.trustStoreUnreadable, reason: path), reason: "no certificate")
      }
      result.roots.add(certificates)
    }
    return result
  }
}

extension ClientIdentity {
  /// Reads the files now. The connections of a `Security` with this identity read them again when they change.
  public init(files: Files) throws(TLSError) {
    var contents: [[UInt8]] = []
    for path in files.paths {
      do throws(ContextRenewal.Failure) {
        contents.append(try read(path, .identityUnreadable))
      } catch {
        throw error.error
      }
    }
    try self.init(contents: contents[...], password: files.password)
    self.files = files
  }
}

/// Maximum size in bytes of a file of certificates or keys. Debian's file of all roots has 220 kB.
private let fileBytesMax = 4 << 20

private func read(_ path: String, _ problem: TLSError.Problem) throws(ContextRenewal.Failure) -> [UInt8] {
  let reason: String
  do throws(Errno) {
    if let bytes = try OpenFile(readingRegular: path).readToEnd(max: fileBytesMax) { return bytes }
    reason = "larger than \(fileBytesMax) bytes"
  } catch {
    reason = "\(error)"
  }
  throw ContextRenewal.Failure(path, TLSError(problem, reason: "\(path): \(reason)"), reason: reason)
}
