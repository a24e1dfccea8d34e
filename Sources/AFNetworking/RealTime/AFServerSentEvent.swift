import Foundation
import Larkspur
import Synchronization

/// An event that a server has sent on an event stream.
///
/// Safe to use from any thread. The listeners of an event and the delegate get the same object.
open class AFServerSentEvent: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  /// The entries of `userInfo` belong to the program, and need not be `Sendable`.
  private struct Fields: @unchecked Sendable {
    var event: String?
    var identifier: String?
    var data: Data?
    var retry: TimeInterval = 0
    var userInfo: [AnyHashable: Any]?
  }

  private let fields = Mutex(Fields())

  /// Creates an event without fields.
  public override init() { super.init() }

  /// Creates an event from fields, with the names of the protocol.
  ///
  /// - Parameter fields: `event`, `id` and `data` as texts, and `retry` as text or number. Other fields go into
  ///   ``userInfo``. A value of another type counts as missing.
  public convenience init(fields: [AnyHashable: Any]!) {
    self.init()
    var rest = fields ?? [:]
    let (event, identifier) = (rest.removeValue(forKey: "event"), rest.removeValue(forKey: "id"))
    let (data, retry) = (rest.removeValue(forKey: "data"), rest.removeValue(forKey: "retry"))
    self.event = event as? String
    self.identifier = identifier as? String
    self.data = data as? Data ?? (data as? String).map { Data($0.utf8) }
    self.retry = Self.interval(retry)
    userInfo = rest
  }

  /// Creates an event that an event source has read.
  convenience init(_ event: ServerSentEvent) {
    self.init()
    self.event = event.event
    identifier = event.id
    data = Data(event.data.utf8)
    retry = event.retry.map { $0 / Duration.milliseconds(1) } ?? 0
    userInfo = [:]
  }

  /// Returns a number of milliseconds. A text that is not a number has no effect (WHATWG HTML, section 9.2.6).
  private static func interval(_ value: Any?) -> TimeInterval {
    if let number = value as? NSNumber { return number.doubleValue }
    guard let text = value as? String, !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      return 0
    }
    return TimeInterval(text) ?? 0
  }

  // MARK: - Properties

  /// The type. An event source's events have the type `message` if the server has named no type.
  open var event: String! {
    get { fields.withLock { $0.event } }
    set { fields.withLock { $0.event = newValue } }
  }

  /// The identifier, or `nil` if there is none. An event without an identifier has the identifier of the latest event
  /// before it in the stream.
  open var identifier: String! {
    get { fields.withLock { $0.identifier } }
    set { fields.withLock { $0.identifier = newValue } }
  }

  /// The data, in UTF-8. Several lines of data are joined by line feeds.
  open var data: Data! {
    get { fields.withLock { $0.data } }
    set { fields.withLock { $0.data = newValue } }
  }

  /// The interval of the field `retry`, or 0 if the event does not have it: in milliseconds, as it is sent and as in
  /// AFRocketClient. An event source waits for this time without the program's help.
  open var retry: TimeInterval {
    get { fields.withLock { $0.retry } }
    set { fields.withLock { $0.retry = newValue } }
  }

  /// The fields that the protocol does not define. Empty for the events of an event source, which ignores these fields
  /// as the standard says. ``AFServerSentEventResponseSerializer`` keeps them.
  open var userInfo: [AnyHashable: Any]! {
    get { fields.withLock { $0.userInfo } }
    set { fields.put(newValue, at: \.userInfo) }
  }

  // MARK: - Archives and copies

  /// `true`: an archive holds texts, numbers and data only.
  open class var supportsSecureCoding: Bool { true }

  private enum Key {
    static let event = "event"
    static let identifier = "identifier"
    static let data = "data"
    static let retry = "retry"
    static let userInfo = "userInfo"
  }

  /// Creates an event from an archive. What is missing in the archive is missing in the event.
  public required init?(coder decoder: NSCoder) {
    super.init()
    let read = Fields(
      event: decoder.text(forKey: Key.event), identifier: decoder.text(forKey: Key.identifier),
      data: decoder.object(NSData.self, forKey: Key.data).map { Data(referencing: $0) },
      retry: decoder.decimal(forKey: Key.retry) ?? 0, userInfo: decoder.textsByName(forKey: Key.userInfo))
    fields.withLock { $0 = read }
  }

  /// Writes the event to a keyed archive. Of ``userInfo``, texts are kept.
  open func encode(with coder: NSCoder) {
    let fields = fields.withLock { $0 }
    if let event = fields.event { coder.encode(event as NSString, forKey: Key.event) }
    if let identifier = fields.identifier { coder.encode(identifier as NSString, forKey: Key.identifier) }
    if let data = fields.data { coder.encode(data as NSData, forKey: Key.data) }
    coder.encode(fields.retry, forKey: Key.retry)
    var texts: [String: String] = [:]
    for case (let name as String, let text as String) in fields.userInfo ?? [:] { texts[name] = text }
    coder.encode(texts as NSDictionary, forKey: Key.userInfo)
  }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns an event of the same class with the same fields.
  open func copy(with zone: NSZone? = nil) -> Any {
    guard let coder = EmptyArchive.decoder(), let copy = type(of: self).init(coder: coder) else { return self }
    let fields = fields.withLock { $0 }
    copy.fields.withLock { $0 = fields }
    return copy
  }
}
