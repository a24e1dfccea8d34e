import Foundation
import LarkspurBytes
import LarkspurCoding
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// The delivery of a load's content to its owner.
extension Transfer {
  /// Maximum number of bytes reserved for a body of known length. The server's length may be false; the buffer grows
  /// for more content.
  private static let reservedBytesMax = 16 << 20

  /// Notifies the owner of the response. The content follows, unless the owner refuses it, which throws.
  ///
  /// - Parameter length: The length of the content in bytes, or -1 if it is not known. Performance: the response would
  ///   have to search its fields for the length.
  func start(_ response: URLResponse, length: Int64) async throws(URLError) {
    if !startNow(response, length: length) { try await startContent(of: response, length: length) }
  }

  /// Notifies the owner of the response, if the owner need not be asked.
  ///
  /// - Returns: `false` if the delegate has to be asked, or a file to be opened.
  @inline(__always)
  func startNow(_ response: URLResponse, length: Int64) -> Bool {
    show(response, length: length)
    perCallDelegate?.notify(of: response)
    switch output {
    case .dataHandler, .dataResult: makeRoom(for: length)
    case .bytes(let channel):
      if let idleTime = channel.idleTime { setIdleTime(idleTime) }
      channel.response.set(.success(response))
    case .fileHandler, .fileResult: return false
    case .delegate:
      guard download == nil, !wants(.response) else { return false }
      if !deliversPieces { makeRoom(for: length) }
    }
    return true
  }

  /// Makes the response the task's. A task that has been cancelled shows no new response, and its owner gets none.
  func show(_ response: URLResponse, length: Int64) {
    content.expectedCount = length
    guard let currentTask else { return content.response = response }
    content.response = currentTask.read { details in
      details.show {
        $0.response = response
        $0.bytesExpectedToReceive = length
      }
      return details.shown.response
    }
  }

  func startLater(_ response: HTTPURLResponse, length: Int64) async throws(URLError) {
    try await startContent(of: response, length: length)
    enter(.delivering)
  }

  private func startContent(of response: URLResponse, length: Int64) async throws(URLError) {
    if let download { return try await openFile(of: download, for: response) }
    if !deliversPieces { makeRoom(for: length) }
    try await decideDisposition(of: response)
  }

  private func makeRoom(for length: Int64) {
    if length > 0 { content.data.reserveCapacity(min(Int(clamping: length), Self.reservedBytesMax)) }
  }

  // MARK: - From the network

  /// Delivers the content that has come, if the owner collects all of it: only the server has to be waited for then.
  ///
  /// - Returns: What has to be provided first, or `nil` if the content is complete.
  func deliver() throws(URLError) -> Need? {
    if let live { return liveNeed(live) }
    guard let arrival = load?.arrival else { throw Self.inconsistency }
    if isHalted { return .resumption }
    switch arrival.content {
    case .cache(let data):
      if !arrival.isTaken, !data.isEmpty {
        arrival.isTaken = true
        takeWhole(data)
      }
      guard try handOverNow() else { return .content }
    case .network(let exchange, let decoder):
      guard collects else { return .content }
      if let need = try deliverNow(from: exchange, decoder) { return need }
    }
    enter(.delivered)
    return nil
  }

  /// Whether the owner gets the whole content at the end, in memory.
  private var collects: Bool {
    switch output {
    case .dataHandler, .dataResult: true
    case .fileHandler, .fileResult, .bytes: false
    case .delegate: download == nil && !deliversPieces
    }
  }

  /// Delivers the content that has come. A load without a worker subscribes to the rest.
  ///
  /// - Returns: `nil` if the content is complete.
  private func deliverNow(from exchange: Exchange, _ decoder: ContentDecoding?) throws(URLError) -> Need? {
    if hasWorker { return .content }
    while exchange.isReceiving {
      let isTaken: Bool?
      do throws(TransportError) {
        isTaken = try exchange.takeData(for: self) { if let decoder { decoder.append($0) } else { take($0) } }
      } catch {
        throw URLError(error, url: machine.request.url)
      }
      guard isTaken != nil else {
        // A load that takes longer needs a task, which shows its progress.
        _ = task
        return .callback
      }
      progressed()
      if let decoder { decodeNow(decoder) }
      guard try handOverNow() else { return .content }
      if let failure = content.lateFailure { throw failure }
      if isHalted { return .resumption }
    }
    try finishDecoding(decoder)
    return nil
  }

  /// Decodes all content that has come, for an owner that collects it.
  private func decodeNow(_ decoder: ContentDecoding) {
    do throws(CodingError) {
      while try decoder.step({ take($0) }) {}
    } catch {
      content.lateFailure = URLError(error, url: machine.request.url)
    }
  }

  private func finishDecoding(_ decoder: ContentDecoding?) throws(URLError) {
    do throws(CodingError) {
      try decoder?.finish()
    } catch {
      throw URLError(error, url: machine.request.url)
    }
  }

  /// Delivers the rest of the content, and waits for the server and for the owner.
  func deliverRest() async throws(URLError) {
    guard let arrival = load?.arrival else { throw Self.inconsistency }
    switch arrival.content {
    case .cache: try await handOver()
    case .network(let exchange, let decoder): try await deliverRest(from: exchange, decoder)
    }
    enter(.delivered)
  }

  /// Stores complete content, and requests the next part of a download if there is one.
  func conclude() throws(URLError) -> Need? {
    guard let load, let arrival = load.arrival else { throw Self.inconsistency }
    if let storing = arrival.storing {
      arrival.storing = nil
      if let need = store(storing) { return need }
    }
    switch arrival.content {
    case .cache(let data):
      if let metrics {
        metrics.collect(
          without: load.request, arrival.response, since: arrival.foundDate ?? metrics.startDate,
          bytes: Int64(data.count), .localCache)
      }
    case .network:
      let isPart = try download?.wantsAnotherPart() ?? false
      endExchange()
      if isPart {
        loadAgain()
        return isHalted ? .resumption : nil
      }
    }
    enter(.complete)
    return nil
  }

  private func deliverRest(from exchange: Exchange, _ decoder: ContentDecoding?) async throws(URLError) {
    if isHalted { try await passGate() }
    var hasMore = exchange.isReceiving
    while hasMore {
      hasMore = try await deliverPiece(of: exchange, decoder)
      progressed()
      if try !handOverNow() { try await handOver() }
      if isHalted { try await passGate() }
    }
    if let failure = content.lateFailure { throw failure }
    try finishDecoding(decoder)
  }

  /// Receives a piece of the content, and further pieces that have come.
  ///
  /// - Returns: `false` if the content is complete or has failed.
  @inline(__always)
  private func deliverPiece(
    of exchange: Exchange, _ decoder: ContentDecoding?
  ) async throws(URLError) -> Bool {
    do throws(TransportError) {
      if let decoder {
        let hasMore =
          try await exchange.receiveData { decoder.append($0) }
          && gather(from: exchange) { (count) throws(TransportError) in
            try exchange.takeData(for: nil) { piece in
              decoder.append(piece)
              count += piece.count
            }
          }
        try await decode(decoder)
        return hasMore && content.lateFailure == nil
      }
      if let file = download?.file {
        let count = try await TaskCallback.awaiting { (callback) throws(TransportError) in
          try exchange.takeData(into: file.file, for: callback)
        }
        guard count > 0 else { return false }
        content.pendingCount += count
        return gather(from: exchange) { (_) throws(TransportError) in
          guard let piece = try exchange.takeData(into: file.file, for: nil) else { return nil }
          content.pendingCount += piece
          return piece > 0
        }
      }
      var isTaken = try exchange.takeData(for: nil) { take($0) }
      if isTaken == nil { isTaken = try await exchange.receiveData { take($0) } }
      guard isTaken == true, exchange.isReceiving else { return false }
      return gather(from: exchange) { (_) throws(TransportError) in try exchange.takeData(for: nil) { take($0) } }
    } catch {
      throw URLError(error, url: machine.request.url)
    }
  }

  /// Takes further pieces that have come, up to `gatheredBytesMax`. A server may send its content in a million chunks,
  /// and handing over each of them takes longer than receiving it.
  ///
  /// - Parameter take: Takes a piece, and adds to its argument the bytes that `content.pendingCount` does not count.
  ///   Returns `nil` if nothing has come, and `false` at the end.
  /// - Returns: `false` if the content is complete or has failed.
  private func gather(from exchange: Exchange, _ take: (inout Int) throws(TransportError) -> Bool?) -> Bool {
    var count = 0
    while exchange.isReceiving, content.pendingCount + count < Self.gatheredBytesMax {
      do throws(TransportError) {
        guard let isTaken = try take(&count) else { return true }
        guard isTaken else { return false }
      } catch {
        // The content before the error is handed over first.
        content.lateFailure = URLError(error, url: machine.request.url)
        return false
      }
    }
    return exchange.isReceiving
  }

  private static let gatheredBytesMax = 64 * 1024

  private func decode(_ decoder: ContentDecoding) async throws(TransportError) {
    // Hand over after each step: a small piece may decode to a large one.
    while true {
      do throws(CodingError) {
        guard try decoder.step({ take($0) }) else { return }
      } catch {
        content.lateFailure = URLError(error, url: machine.request.url)
        return
      }
      do throws(URLError) {
        try await handOver()
      } catch {
        content.failure = error
        return
      }
    }
  }

  // MARK: - To the owner

  /// Takes a piece of the content, without waiting.
  @inline(__always)
  func take(_ piece: Span<UInt8>) {
    content.pendingCount += piece.count
    content.keep(piece)
    switch output {
    case .dataHandler, .dataResult: content.data.append(copying: piece)
    case .bytes: content.piece.append(copying: piece)
    case .fileHandler, .fileResult: write(piece)
    case .delegate:
      if download == nil { content.data.append(copying: piece) } else { write(piece) }
    }
  }

  /// Takes the whole content of a stored response. An owner that gets the content in one piece shares the cache's
  /// bytes, without a copy of any length.
  private func takeWhole(_ data: Data) {
    guard download == nil, content.data.isEmpty, content.kept == nil else { return take(data.span) }
    switch output {
    case .dataHandler, .dataResult, .delegate:
      content.pendingCount += data.count
      content.data = data
    case .bytes, .fileHandler, .fileResult: take(data.span)
    }
  }

  private func write(_ piece: Span<UInt8>) {
    do throws(URLError) {
      try download?.file?.write(piece)
    } catch {
      if content.failure == nil { content.failure = error }
    }
  }

  /// Whether the delegate is notified of content as it comes: of its bytes, or for a download of the bytes written to
  /// the file.
  private var deliversPieces: Bool {
    guard download == nil else { return wants(.writtenData) }
    return task.prefersIncrementalDelivery && wants(.didReceiveData)
  }

  /// Hands over the content that has been taken, if that needs no waiting.
  ///
  /// - Returns: `false` if the owner has to be waited for.
  @inline(__always)
  private func handOverNow() throws(URLError) -> Bool {
    switch output {
    case .dataHandler, .dataResult, .fileHandler, .fileResult: break
    case .bytes: return content.pendingCount == 0 && content.failure == nil
    case .delegate:
      guard !deliversPieces else { return content.pendingCount == 0 && content.failure == nil }
      content.isBuffered = true
    }
    if let failure = content.failure { throw failure }
    let count = content.pendingCount
    content.pendingCount = 0
    _ = countReceived(count)
    return true
  }

  /// Counts content that is handed over now.
  ///
  /// - Returns: The number of bytes that have come in all.
  private func countReceived(_ count: Int) -> Int64 {
    guard let currentTask else { return Int64(content.data.count) }
    let (received, isWatched) = currentTask.read { details in
      (
        details.show { shown in
          shown.bytesReceived += Int64(count)
          return shown.bytesReceived
        }, details.progress != nil
      )
    }
    if isWatched { currentTask.updateProgress() }
    perCallDelegate?.notify(of: content.data, latest: count, total: received)
    return received
  }

  /// Hands over the content that has been taken, and waits until the owner takes more.
  @inline(__always)
  func handOver() async throws(URLError) {
    if let failure = content.failure { throw failure }
    let count = content.pendingCount
    guard count > 0 else { return }
    content.pendingCount = 0
    let received = countReceived(count)
    switch output {
    case .dataHandler, .dataResult, .fileHandler, .fileResult: return
    case .bytes(let channel):
      let piece = content.piece
      content.piece = []
      // A reader that is gone takes nothing. The wait then ends when the load is interrupted.
      _ = try await waiting(givingUpBy: { channel.interrupt() }, { await channel.write(piece) })
    case .delegate:
      content.isBuffered = !deliversPieces
      if !content.isBuffered { try await handOverToDelegate(count, received) }
    }
  }

  private func handOverToDelegate(_ count: Int, _ received: Int64) async throws(URLError) {
    // The delegate is not called while the task is suspended.
    try await passGate()
    pauseClock()
    defer { resumeClock() }
    if let downloadTask = task as? URLSessionDownloadTask {
      let expected = task.read { $0.shown.bytesExpectedToReceive }
      try await notifyDelegateOfContent { session, delegate in
        guard let delegate = delegate as? any URLSessionDownloadDelegate else { return false }
        delegate.urlSession(
          session, downloadTask: downloadTask, didWriteData: Int64(count), totalBytesWritten: received,
          totalBytesExpectedToWrite: expected)
        return true
      }
      return
    }
    guard let dataTask = task as? URLSessionDataTask else { return }
    let data = content.data
    content.data = Data()
    try await notifyDelegateOfContent { session, delegate in
      guard let delegate = delegate as? any URLSessionDataDelegate else { return false }
      delegate.urlSession(session, dataTask: dataTask, didReceive: data)
      return true
    }
  }
}
