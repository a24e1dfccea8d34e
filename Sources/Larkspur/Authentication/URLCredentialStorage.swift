import Foundation
import Synchronization

/// A store of credentials by protection space and user. It may be used from any thread.
///
/// ``shared`` keeps credentials that are ``URLCredential/Persistence/permanent`` in a file that only its owner can
/// read: in `$XDG_DATA_HOME/larkspur` (by default `~/.local/share/larkspur`), in a directory with the program's name.
/// The file holds passwords in clear text: it is as safe as the user's SSH keys without a passphrase, and less safe
/// than a keychain that asks the user. Processes of one program share the file and write it one after another. A
/// storage that a program makes keeps everything in memory.
///
/// Credentials without a password (client certificates, server trust) are never written to the file.
open class URLCredentialStorage: NSObject, @unchecked Sendable {
  private static let standard = URLCredentialStorage(file: CredentialFile.standard)

  /// The storage of sessions whose configuration sets no other storage.
  open class var shared: URLCredentialStorage { standard }

  private struct Slot {
    var credentials: [String: URLCredential] = [:]
    /// The user of the default credential, or `nil` if the default has no user or there is none.
    var defaultUser: String?
    /// The default credential, if it has no user.
    var nameless: URLCredential?

    var isEmpty: Bool { credentials.isEmpty && nameless == nil }
  }

  private let slots = Mutex<[URLProtectionSpace: Slot]>([:])
  private let file: CredentialFile?
  /// The path of the file, or `nil` for a storage in memory.
  var path: String? { file?.path }
  /// The number of changes that removed or replaced credentials with a user. A reader that keeps a copy of a credential
  /// compares the number: if it has changed, the copy may be out of date.
  let withdrawals = Atomic<Int>(0)

  /// Creates a storage that keeps everything in memory and shares nothing.
  public override init() {
    file = nil
    super.init()
  }

  /// Creates a storage that keeps permanent credentials in `file`, or everything in memory if `file` is `nil`.
  init(file: CredentialFile?) {
    self.file = file
    super.init()
  }

  /// Creates a storage that keeps everything in memory.
  static func ephemeral() -> URLCredentialStorage { URLCredentialStorage(file: nil) }

  /// Returns all credentials of a space, by their users, or `nil` if there are none.
  open func credentials(for space: URLProtectionSpace) -> [String: URLCredential]? {
    let found = read { $0[space]?.credentials }
    return found?.isEmpty == false ? found : nil
  }

  /// All credentials that have a user.
  open var allCredentials: [URLProtectionSpace: [String: URLCredential]] {
    read { $0.mapValues(\.credentials).filter { !$0.value.isEmpty } }
  }

  /// Stores a credential, replacing the one of the same user. The first credential of a space becomes its default until
  /// another credential is chosen.
  ///
  /// A credential without a user is not stored, nor one with the persistence ``URLCredential/Persistence/none`` or
  /// ``URLCredential/Persistence/synchronizable``. Darwin does not store the latter either if its user has no account.
  open func set(_ credential: URLCredential, for space: URLProtectionSpace) {
    guard credential.isKept, let user = credential.user else { return }
    change { slots in
      var slot = slots[space] ?? Slot()
      if slot.isEmpty { slot.defaultUser = user }
      slot.credentials[user] = credential
      slots[space] = slot
    }
  }

  /// Removes a credential if the space holds an equal one: user, password and persistence have to be the same. A
  /// credential that is ``URLCredential/Persistence/synchronizable`` stays: see ``remove(_:for:options:)``.
  open func remove(_ credential: URLCredential, for space: URLProtectionSpace) {
    remove(credential, for: space, options: nil)
  }

  /// Removes a credential if the space holds an equal one.
  ///
  /// - Parameters:
  ///   - credential: The credential. User, password and persistence have to be the same as those of the stored one.
  ///   - space: The credential's protection space.
  ///   - options: With ``NSURLCredentialStorageRemoveSynchronizableCredentials`` set to true, a credential that is
  ///     ``URLCredential/Persistence/synchronizable`` is removed as well.
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

  /// Returns the credential to try first: the one that ``setDefaultCredential(_:for:)`` chose, or else the
  /// first one that was stored in the space.
  ///
  /// - Returns: The credential, or `nil` if there is none or it has been removed.
  open func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
    read { slots in
      guard let slot = slots[space] else { return nil }
      return slot.defaultUser.flatMap { slot.credentials[$0] } ?? slot.nameless
    }
  }

  /// Stores a credential and makes it the default of its space. A credential whose persistence ``set(_:for:)`` does not
  /// store is not stored here either. A credential without a user is.
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

  // Sessions call these members and not those before them, so that a subclass can decide by the task.

  /// Passes all credentials of a space to the handler, before it returns. The default implementation calls
  /// ``credentials(for:)``.
  open func getCredentials(
    for protectionSpace: URLProtectionSpace, task: URLSessionTask,
    completionHandler: ([String: URLCredential]?) -> Void
  ) {
    completionHandler(credentials(for: protectionSpace))
  }

  /// Stores a credential. The default implementation calls ``set(_:for:)``.
  open func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
    set(credential, for: protectionSpace)
  }

  /// Removes a credential. The default implementation calls ``remove(_:for:options:)``.
  open func remove(
    _ credential: URLCredential, for protectionSpace: URLProtectionSpace, options: [String: AnyObject]? = [:],
    task: URLSessionTask
  ) {
    remove(credential, for: protectionSpace, options: options)
  }

  /// Passes the credential to try first to the handler, before it returns. The default implementation calls
  /// ``defaultCredential(for:)``.
  open func getDefaultCredential(
    for space: URLProtectionSpace, task: URLSessionTask, completionHandler: (URLCredential?) -> Void
  ) {
    completionHandler(defaultCredential(for: space))
  }

  /// Returns the credentials that ``getCredentials(for:task:completionHandler:)`` passes to its handler.
  open func credentials(for protectionSpace: URLProtectionSpace, task: URLSessionTask) async -> [String: URLCredential]?
  {
    var found: [String: URLCredential]?
    getCredentials(for: protectionSpace, task: task) { found = $0 }
    return found
  }

  /// Returns the credential that ``getDefaultCredential(for:task:completionHandler:)`` passes to its handler.
  open func defaultCredential(for space: URLProtectionSpace, task: URLSessionTask) async -> URLCredential? {
    var found: URLCredential?
    getDefaultCredential(for: space, task: task) { found = $0 }
    return found
  }

  /// Stores a credential and makes it the default. The default implementation calls ``setDefaultCredential(_:for:)``.
  open func setDefaultCredential(
    _ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask
  ) {
    setDefaultCredential(credential, for: protectionSpace)
  }

  /// Removes everything, from the file as well.
  func removeAll() { change { $0 = [:] } }

  // MARK: -

  private func read<Result: Sendable>(_ body: @Sendable ([URLProtectionSpace: Slot]) -> Result) -> Result {
    slots.withLock { slots in
      refresh(&slots)
      return body(slots)
    }
  }

  /// Changes the slots, and writes the file if its records have changed.
  ///
  /// - Parameter body: Makes the change. It may be called twice.
  private func change(_ body: (inout [URLProtectionSpace: Slot]) -> Void) {
    let hasChanged = slots.withLock { slots in
      refresh(&slots)
      let before = slots
      body(&slots)
      guard !Self.areEqual(before, slots) else { return false }
      if let file, Self.records(slots) != Self.records(before) {
        file.exclusively {
          // Start from the file as it is now, so that other processes' changes stay.
          slots = before
          refresh(&slots)
          body(&slots)
          // If the write fails, the change stays in memory. No caller could use the error.
          file.write(Self.records(slots))
        }
      }
      if Self.hasWithdrawn(before, slots) { withdrawals.add(1, ordering: .releasing) }
      return true
    }
    // Post without holding the lock, because observers may call back.
    if hasChanged { NotificationCenter.default.post(name: .NSURLCredentialStorageChanged, object: self) }
  }

  /// Takes over the changes that other processes have made to the file.
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
