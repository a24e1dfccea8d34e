import Synchronization

extension TestServer {
  /// A route of resumable uploads, and the record of its uploads. Usable from any thread.
  public final class Uploads: Sendable {
    let path: String
    private let ledger: Mutex<UploadLedger>

    init(_ path: String, _ upload: ResumableUpload) {
      self.path = path
      ledger = Mutex(UploadLedger(path: path, upload))
    }

    /// All uploads so far, in the order in which they were started.
    public var all: [Upload] { ledger.withLock { $0.uploads } }

    /// The choices of the server for requests to come.
    public var options: ResumableUpload {
      get { ledger.withLock { $0.options } }
      set { ledger.withLock { $0.options = newValue } }
    }

    /// Whether the path is that of the route or of an upload resource.
    func takes(_ path: String) -> Bool {
      path == self.path || path.hasPrefix(self.path + "/") && Int(path.dropFirst(self.path.count + 1)) != nil
    }

    func open(_ head: UploadLedger.Head) -> UploadLedger.Opening { ledger.withLock { $0.open(head) } }

    func receive(_ bytes: ArraySlice<UInt8>, _ exchange: inout UploadLedger.Exchange) -> UploadLedger.Receipt {
      ledger.withLock { $0.receive(bytes, &exchange) }
    }

    func finish(_ exchange: UploadLedger.Exchange) -> UploadLedger.Closing { ledger.withLock { $0.finish(exchange) } }
  }
}
