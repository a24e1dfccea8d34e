import Foundation
import LarkspurBytes
import LarkspurCoding
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// The delivery of a load's content to its owner.
extension Load {
  /// Maximum number of bytes reserved for a body of known length. The server's length may be false; the buffer grows
  /// for more content.
  private static let reservedBytesMax = 16 << 20

  /// Notifies the owner of the response. The content follows, unless the owner refuses it, which throws.
  ///
  /// - Parameter length: The length of the content in bytes, or -1 if it is not known. Performance: the response would
  ///   have to search its fields for the length.
  func start(_ response: URLResponse, length: Int64) async throws(URLError) {
    if !begins(response, length: length) { try await startContent(of: response, length: length) }
  }

  /// Notifies the owner of the response, if the owner need not be asked.
  ///
  /// - Returns: `false` if the delegate has to be asked, or a file to be opened.
  @inline(__always)
  func begins(_ response: URLResponse, length: Int64) -> Bool {
    show(response, length: length)
    perCallDelegate?.notify(of: response)
    switch output {
    case .dataHandler, .dataResult: makeRoom(for: length)
    case .bytes(let channel):
      if let idleTime = channel.idleTime { setIdleTime(idleTime) }
      channel.response.set(.success(response))
    case .fileHandler, .fileResult: return false
    case .delegate:
      guard download == nil, !needsCall(.response) else { return false }
      if !deliversPieces { makeRoom(for: length) }
    }
    return true
  }

  /// Makes the response the task's. A cancelled task shows no new response, and its owner gets no response.
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

  func startContent(of response: URLResponse, length: Int64) async throws(URLError) {
    if let download { return try await openFile(of: download, for: response) }
    if !deliversPieces { makeRoom(for: length) }
    try await decideDisposition(of: response)
  }

  private func makeRoom(for length: Int64) {
    if length > 0 { content.data.reserveCapacity(min(Int(clamping: length), Self.reservedBytesMax)) }
  }

  // MARK: - From the network

  /// Delivers the received content.
  ///
  /// - Returns: The step that must come first, or `nil` if the content is complete.
  func deliver() throws(URLError) -> Stop? {
    if let live { return stop(of: live) }
    guard let arrival = networkLoad?.arrival else { throw Self.inconsistency }
    switch arrival.content {
    case .cache(let data):
      if isHalted { return .wait(.resumption) }
      if !arrival.isTaken, !data.isEmpty {
        arrival.isTaken = true
        takeWhole(data)
      }
      guard try handOver() else { return .need(.owner) }
    case .network(let exchange, let decoder):
      if let stop = try deliver(from: exchange, decoder) { return stop }
    }
    enter(.delivered)
    return nil
  }

  private func deliver(from exchange: Exchange, _ decoder: ContentDecoding?) throws(URLError) -> Stop? {
    var hasMore = exchange.isReceiving
    while true {
      while let decoder, decoder.hasMore {
        decode(decoder)
        // After each step: a small piece may decode to a large one.
        guard try handOver() else { return .need(.owner) }
      }
      if let failure = content.lateFailure { throw failure }
      if isHalted { return .wait(.resumption) }
      guard hasMore else { break }
      guard let isOpen = takePieces(of: exchange, decoder) else {
        // A load that takes longer needs a task, which shows its progress.
        _ = task
        return .wait(.callback)
      }
      hasMore = isOpen
      if !isOpen, let trailers = exchange.trailers {
        networkLoad?.arrival?.response.keep(trailers: .wire(bytes: trailers.bytes, table: trailers.fields))
      }
      progressed()
      if decoder == nil, try !handOver() { return .need(.owner) }
    }
    do throws(CodingError) {
      try decoder?.finish()
    } catch {
      throw URLError(error, url: machine.request.url)
    }
    return nil
  }

  /// Decodes a step of the received content.
  private func decode(_ decoder: ContentDecoding) {
    do throws(CodingError) {
      try decoder.step { take($0) }
    } catch {
      content.lateFailure = URLError(error, url: machine.request.url)
    }
  }

  /// Takes the received pieces, up to `gatheredBytesMax`. A server may send its content in a million chunks, and
  /// handing over each of them takes longer than receiving it.
  ///
  /// - Returns: Whether more may come, or `nil` if there is nothing yet: the load has subscribed to the next piece.
  @inline(__always)
  private func takePieces(of exchange: Exchange, _ decoder: ContentDecoding?) -> Bool? {
    do throws(TransportError) {
      guard var count = try takePiece(of: exchange, decoder, for: self) else { return nil }
      while exchange.isReceiving {
        guard count < Self.gatheredBytesMax, let further = try takePiece(of: exchange, decoder, for: nil) else {
          return true
        }
        count += further
      }
    } catch {
      // The content before the error is handed over first.
      content.lateFailure = URLError(error, url: machine.request.url)
    }
    return false
  }

  private static let gatheredBytesMax = 64 * 1024

  /// - Returns: The number of bytes taken, or `nil` if there is nothing yet.
  @inline(__always)
  private func takePiece(
    of exchange: Exchange, _ decoder: ContentDecoding?, for callback: (any LoopCallback)?
  ) throws(TransportError) -> Int? {
    if decoder == nil, let file = download?.file {
      let count = try exchange.takeData(into: file.file, for: callback)
      content.pendingCount += count ?? 0
      return count
    }
    var count = 0
    let isTaken = try exchange.takeData(for: callback) { piece in
      count = piece.count
      if let decoder { decoder.append(piece) } else { take(piece) }
    }
    return isTaken == nil ? nil : count
  }

  /// Stores complete content, and requests the next part of a download if there is one.
  func conclude() throws(URLError) -> Stop? {
    guard let load = networkLoad, let arrival = load.arrival else { throw Self.inconsistency }
    if let storing = arrival.storing {
      arrival.storing = nil
      if let need = store(storing) { return .need(need) }
    }
    switch arrival.content {
    case .cache(let data):
      if let metrics {
        metrics.collect(
          without: load.request, arrival.response, since: arrival.foundDate ?? metrics.startDate,
          bytes: Int64(data.count), .localCache)
      }
    case .network:
      let isPart = try download?.needsAnotherPart() ?? false
      endExchange()
      if isPart {
        loadAgain()
        return isHalted ? .wait(.resumption) : nil
      }
    }
    enter(.complete)
    return nil
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
    guard download == nil else { return needsCall(.writtenData) }
    return task.prefersIncrementalDelivery && needsCall(.didReceiveData)
  }

  /// Hands over the content that has been taken, if that needs no waiting.
  ///
  /// - Returns: `false` if the owner has to be waited for: see `awaitOwner`.
  @inline(__always)
  private func handOver() throws(URLError) -> Bool {
    if let failure = content.failure { throw failure }
    switch output {
    case .dataHandler, .dataResult, .fileHandler, .fileResult: break
    case .bytes: return content.pendingCount == 0
    case .delegate:
      guard !deliversPieces else { return content.pendingCount == 0 }
      content.isBuffered = true
    }
    let count = content.pendingCount
    guard count > 0 else { return true }
    content.pendingCount = 0
    _ = countReceived(count)
    return true
  }

  /// Counts content that is handed over now.
  ///
  /// - Returns: The number of received bytes in all.
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
  func handOverTaken() async throws(URLError) {
    if try !handOver() { try await awaitOwner() }
  }

  /// Hands over the content that has been taken to an owner that takes it piece by piece, and waits for the owner.
  func awaitOwner() async throws(URLError) {
    let count = content.pendingCount
    content.pendingCount = 0
    let received = countReceived(count)
    guard case .bytes(let channel) = output else {
      content.isBuffered = false
      return try await handOverToDelegate(count, received)
    }
    let piece = content.piece
    content.piece = []
    // A reader that is gone takes nothing. The wait then ends when the load is interrupted.
    _ = try await waiting(cancellingBy: { channel.interrupt() }, { await channel.write(piece) })
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
