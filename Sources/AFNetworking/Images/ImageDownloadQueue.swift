/// The downloads of an image downloader: which of them are active, which wait, and which receivers each one has. Pure:
/// the caller performs what the functions return.
///
/// A download is identified by its request. A request that is equal to that of a download in the queue joins this
/// download. Each operation takes constant time, regardless of the number of downloads and receivers.
struct ImageDownloadQueue<Key: Hashable, Receiver> {
  typealias Priority = AFImageDownloadPriority

  struct Download {
    let key: Key
    var priority: Priority
    var isActive = false
    /// By the numbers of their calls, in the order of these.
    var receivers = OrderedTable<Int, Receiver>()
  }

  private var downloads: [Int: Download] = [:]
  private var numbers: [Key: Int] = [:]
  /// The download of each call.
  private var numbersByCall: [Int: Int] = [:]
  private var waiting: [Priority: OrderedTable<Int, Void>] = [:]
  private var latest = 0
  private(set) var activeCount = 0
  /// Number of downloads that ``finish(_:)`` has removed.
  private(set) var endedCount = 0
  var activeMax: Int
  /// Whether a new download waits in front of those that wait already.
  var isLastInFirstOut: Bool

  init(activeMax: Int, isLastInFirstOut: Bool) {
    self.activeMax = activeMax
    self.isLastInFirstOut = isLastInFirstOut
  }

  var count: Int { downloads.count }

  func number(of key: Key) -> Int? { numbers[key] }

  func number(ofCall call: Int) -> Int? { numbersByCall[call] }

  func isActive(_ number: Int) -> Bool { downloads[number]?.isActive ?? false }

  /// Adds a receiver to a download. A higher priority than the download's takes its place.
  ///
  /// - Parameter call: A number from `nextNumber()`, which identifies the receiver.
  /// - Returns: Whether there is a download for the key.
  mutating func join(_ key: Key, call: Int, _ receiver: Receiver, priority: Priority) -> Bool {
    guard let number = numbers[key], let old = downloads[number]?.priority else { return false }
    // Performance: in place, because a copy of the download would copy its receivers.
    downloads[number]?.receivers.append(call, receiver)
    numbersByCall[call] = number
    guard priority > old else { return true }
    downloads[number]?.priority = priority
    if !isActive(number) {
      waiting[old]?.remove(number)
      enqueue(number, priority)
    }
    return true
  }

  /// Returns a number for a download or a call that is about to be added.
  mutating func nextNumber() -> Int {
    latest += 1
    return latest
  }

  /// Adds a download, which waits until ``startNext()`` returns its number.
  ///
  /// - Parameter call: A number from `nextNumber()`, which identifies the receiver.
  mutating func add(_ number: Int, _ key: Key, call: Int, _ receiver: Receiver, priority: Priority) {
    var download = Download(key: key, priority: priority)
    download.receivers.append(call, receiver)
    downloads[number] = download
    numbers[key] = number
    numbersByCall[call] = number
    enqueue(number, priority)
  }

  private mutating func enqueue(_ number: Int, _ priority: Priority) {
    if isLastInFirstOut {
      waiting[priority, default: OrderedTable()].prepend(number, ())
    } else {
      waiting[priority, default: OrderedTable()].append(number, ())
    }
  }

  /// Takes the next waiting download, if fewer downloads than the maximum are active.
  mutating func startNext() -> Int? {
    guard activeCount < activeMax else { return nil }
    for priority in Priority.allCases.reversed() {
      guard let number = waiting[priority]?.popFirst()?.key else { continue }
      downloads[number]?.isActive = true
      activeCount += 1
      return number
    }
    return nil
  }

  /// Removes a download that is over.
  ///
  /// - Returns: The download, or `nil` if it has been cancelled before.
  mutating func finish(_ number: Int) -> Download? {
    guard let download = remove(number) else { return nil }
    endedCount &+= 1
    var receivers = download.receivers
    while let receiver = receivers.popFirst() { numbersByCall[receiver.key] = nil }
    return download
  }

  /// Removes a receiver. A download without receivers is removed, too.
  ///
  /// - Returns: The receiver, and the number of the download if it has been removed; `nil` if the download is over, or
  ///   the receiver has been removed before.
  mutating func cancel(_ call: Int) -> (receiver: Receiver, cancelled: Int?)? {
    guard let number = numbersByCall.removeValue(forKey: call),
      let receiver = downloads[number]?.receivers.remove(call)
    else { return nil }
    guard downloads[number]?.receivers.count == 0 else { return (receiver, nil) }
    _ = remove(number)
    return (receiver, number)
  }

  private mutating func remove(_ number: Int) -> Download? {
    guard let download = downloads.removeValue(forKey: number) else { return nil }
    numbers[download.key] = nil
    if download.isActive { activeCount -= 1 } else { waiting[download.priority]?.remove(number) }
    return download
  }

  /// Returns the receivers of a download, in the order of their requests.
  func receivers(of number: Int) -> [Receiver] { downloads[number]?.receivers.values ?? [] }
}
