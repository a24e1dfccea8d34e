import Foundation
import Synchronization

/// Keeps credentials by protection space and user. For any thread.
///
/// ``shared`` keeps what is ``URLCredential/Persistence/permanent`` in a file, which only its owner can read: in
/// `$XDG_DATA_HOME/larkspur` (by default `~/.local/share/larkspur`), in a folder with the program's name. The passwords stand
/// in it as they are: it is as safe as the user's SSH keys without a passphrase, and not as a keychain that asks. Processes
/// of one program share it, and write one after another. A storage that a program makes keeps everything in memory.
///
/// Credentials without a password (client certificates, server trust) are never written to the file.
open class URLCredentialStorage: NSObject, @unchecked Sendable {
  private static let standard = URLCredentialStorage(file: CredentialFile.standard)

  /// The storage that sessions use if they are not given another one.
  open class var shared: URLCredentialStorage { standard }

  private struct Slot {
    var credentials: [String: URLCredential] = [:]
    /// The user of the default credential.
    var defaultUser: String?
    /// A default that has no user.
    var nameless: URLCredential?

    var isEmpty: Bool { credentials.isEmpty && nameless == nil }
  }

  private let slots = Mutex<[URLProtectionSpace: Slot]>([:])
  private let file: CredentialFile?
  /// Counts the credentials that went or changed: who remembers one can see that it may be out of date.
  let withdrawals = Atomic<Int>(0)

  /// A storage of its own, that keeps everything in memory and shares nothing.
  public override init() {
    file = nil
    super.init()
  }

  /// Nil: everything is kept in memory.
  init(file: CredentialFile?) {
    self.file = file
    super.init()
  }

  /// A storage that keeps everything in memory.
  static func ephemeral() -> URLCredentialStorage { URLCredentialStorage(file: nil) }

  /// All credentials of a space, by their users. Nil: there are none.
  open func credentials(for space: URLProtectionSpace) -> [String: URLCredential]? {
    let found = read { $0[space]?.credentials }
    return found?.isEmpty == false ? found : nil
  }

  /// Everything that is kept and has a user.
  open var allCredentials: [URLProtectionSpace: [String: URLCredential]] {
    read { $0.mapValues(\.credentials).filter { !$0.value.isEmpty } }
  }

  /// Keeps a credential, in the place of another one of the same user. The first one of a space is its default, until
  /// another one is chosen. One without a user is not kept, nor one of the persistence ``URLCredential/Persistence/none`` or, as
  /// where Darwin's user has no account, ``URLCredential/Persistence/synchronizable``.
  open func set(_ credential: URLCredential, for space: URLProtectionSpace) {
    guard credential.isKept, let user = credential.user else { return }
    change { slots in
      var slot = slots[space] ?? Slot()
      if slot.isEmpty { slot.defaultUser = user }
      slot.credentials[user] = credential
      slots[space] = slot
    }
  }

  /// Removes a credential, if the space has it: with another password, or another persistence, it is another one. One that
  /// is ``URLCredential/Persistence/synchronizable`` stays: see ``remove(_:for:options:)``.
  open func remove(_ credential: URLCredential, for space: URLProtectionSpace) {
    remove(credential, for: space, options: nil)
  }

  /// Removes a credential, if the space has it.
  ///
  /// - Parameters:
  ///   - credential: With another password, or another persistence, it is another one.
  ///   - space: Where it counts.
  ///   - options: ``NSURLCredentialStorageRemoveSynchronizableCredentials``, true, lets one go that is
  ///     ``URLCredential/Persistence/synchronizable``.
  open func remove(
    _ credential: URLCredential, for space: URLProtectionSpace, options: [String: AnyObject]? = [:]
  ) {
    if credential.persistence == .synchronizable {
      let option = options?[NSURLCredentialStorageRemoveSynchronizableCredentials] as? NSNumber
      guard option?.boolValue == true else { return }
    }
    change { slots in
      guard var slot = slots[space] else { return }
      if let user = credential.user {
        guard slot.credentials[user] == credential else { return }
        slot.credentials[user] = nil
        if slot.defaultUser == user { slot.defaultUser = nil }
      } else if slot.nameless == credential {
        slot.nameless = nil
      }
      slots[space] = slot.isEmpty ? nil : slot
    }
  }

  /// The credential that is tried first: the one that was chosen by ``setDefaultCredential(_:for:)``, or else the first one
  /// that the space had. Nil: there is none, or it has been removed.
  open func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
    read { slots in
      guard let slot = slots[space] else { return nil }
      return slot.defaultUser.flatMap { slot.credentials[$0] } ?? slot.nameless
    }
  }

  /// Keeps a credential, and chooses it to be tried first. What ``set(_:for:)`` does not keep for its persistence, this does not.
  open func setDefaultCredential(_ credential: URLCredential, for space: URLProtectionSpace) {
    guard credential.isKept else { return }
    change { slots in
      var slot = slots[space] ?? Slot()
      slot.defaultUser = credential.user
      slot.nameless = nil
      if let user = credential.user { slot.credentials[user] = credential } else { slot.nameless = credential }
      slots[space] = slot
    }
  }

  // MARK: - For a task

  // A session calls these and not those above, so that a subclass can answer by the task.

  /// Hands over all credentials of a space, before it returns. Without an override it calls ``credentials(for:)``.
  open func getCredentials(
    for protectionSpace: URLProtectionSpace, task: URLSessionTask,
    completionHandler: ([String: URLCredential]?) -> Void
  ) {
    completionHandler(credentials(for: protectionSpace))
  }

  /// Keeps a credential. Without an override it calls ``set(_:for:)``.
  open func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
    set(credential, for: protectionSpace)
  }

  /// Removes a credential. Without an override it calls ``remove(_:for:options:)``.
  open func remove(
    _ credential: URLCredential, for protectionSpace: URLProtectionSpace, options: [String: AnyObject]? = [:],
    task: URLSessionTask
  ) {
    remove(credential, for: protectionSpace, options: options)
  }

  /// Hands over the credential that is tried first, before it returns. Without an override it calls
  /// ``defaultCredential(for:)``.
  open func getDefaultCredential(
    for space: URLProtectionSpace, task: URLSessionTask, completionHandler: (URLCredential?) -> Void
  ) {
    completionHandler(defaultCredential(for: space))
  }

  /// What ``getCredentials(for:task:completionHandler:)`` finds.
  open func credentials(for protectionSpace: URLProtectionSpace, task: URLSessionTask) async -> [String: URLCredential]?
  {
    var found: [String: URLCredential]?
    getCredentials(for: protectionSpace, task: task) { found = $0 }
    return found
  }

  /// What ``getDefaultCredential(for:task:completionHandler:)`` finds.
  open func defaultCredential(for space: URLProtectionSpace, task: URLSessionTask) async -> URLCredential? {
    var found: URLCredential?
    getDefaultCredential(for: space, task: task) { found = $0 }
    return found
  }

  /// Keeps a credential to be tried first. Without an override it calls ``setDefaultCredential(_:for:)``.
  open func setDefaultCredential(
    _ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask
  ) {
    setDefaultCredential(credential, for: protectionSpace)
  }

  /// Forgets everything, in the file as well.
  func removeAll() { change { $0 = [:] } }

  // MARK: -

  private func read<Result: Sendable>(_ body: @Sendable ([URLProtectionSpace: Slot]) -> Result) -> Result {
    slots.withLock { slots in
      refresh(&slots)
      return body(slots)
    }
  }

  /// - Parameter body: May be called twice.
  private func change(_ body: (inout [URLProtectionSpace: Slot]) -> Void) {
    let hasChanged = slots.withLock { slots in
      refresh(&slots)
      let before = slots
      body(&slots)
      guard !Self.areEqual(before, slots) else { return false }
      if let file, Self.records(slots) != Self.records(before) {
        file.exclusively {
          // What others have written meanwhile stays.
          slots = before
          refresh(&slots)
          body(&slots)
          // What cannot be written stays in memory: there is nobody to tell.
          file.write(Self.records(slots))
        }
      }
      if Self.hasWithdrawn(before, slots) { withdrawals.add(1, ordering: .releasing) }
      return true
    }
    // Observers may call back.
    if hasChanged { NotificationCenter.default.post(name: .NSURLCredentialStorageChanged, object: self) }
  }

  /// Takes over what other processes have done to the file.
  private func refresh(_ slots: inout [URLProtectionSpace: Slot]) {
    guard let file, let records = file.readIfChanged() else { return }
    let before = slots
    for (space, var slot) in slots {
      slot.credentials = slot.credentials.filter { !$0.value.isPermanent }
      if let user = slot.defaultUser, slot.credentials[user] == nil { slot.defaultUser = nil }
      slots[space] = slot.isEmpty ? nil : slot
    }
    for record in records {
      guard let credential = record.credential else { continue }
      var slot = slots[record.space] ?? Slot()
      slot.credentials[record.user] = credential
      if record.isDefault, slot.defaultUser == nil { slot.defaultUser = record.user }
      slots[record.space] = slot
    }
    if Self.hasWithdrawn(before, slots) { withdrawals.add(1, ordering: .releasing) }
  }

  private static func areEqual(_ one: [URLProtectionSpace: Slot], _ two: [URLProtectionSpace: Slot]) -> Bool {
    one.count == two.count
      && one.allSatisfy { space, slot in
        guard let other = two[space] else { return false }
        return slot.credentials == other.credentials && slot.defaultUser == other.defaultUser
          && slot.nameless == other.nameless
      }
  }

  private static func hasWithdrawn(_ before: [URLProtectionSpace: Slot], _ after: [URLProtectionSpace: Slot]) -> Bool {
    before.contains { space, slot in
      slot.credentials.contains { user, credential in after[space]?.credentials[user] != credential }
    }
  }

  private static func records(_ slots: [URLProtectionSpace: Slot]) -> [CredentialRecord] {
    let records = slots.flatMap { space, slot in
      slot.credentials.values.filter(\.isPermanent).compactMap { credential in
        CredentialRecord(credential, space, isDefault: slot.defaultUser == credential.user)
      }
    }
    return records.sorted()
  }
}
