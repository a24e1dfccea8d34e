import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// The receiver of a byte stream's events. All functions are called on the stream's loop, and may call the stream.
public protocol ByteStreamUser: AnyObject {
  /// Whether received bytes are wanted. While this is `false`, nothing is received, and TCP's flow control slows the
  /// peer down.
  var acceptsBytes: Bool { get }
  /// Takes received bytes, until `acceptsBytes` becomes `false`.
  ///
  /// - Returns: The number of bytes taken. The stream keeps the rest.
  func received(_ bytes: Span<UInt8>) -> Int
  /// The peer has closed its sending side, and all of its bytes have been taken.
  func receivedEnd()
  /// The kernel has taken all bytes that were written.
  func outputDrained()
  /// The kernel takes no more bytes: the peer has closed or reset the connection. What has been received before is
  /// still delivered.
  func sendingFailed(_ error: TransportError)
  /// The connection is lost. Nothing follows.
  func failed(_ error: TransportError)
}

/// A connection that carries bytes without HTTP, in both directions at the same time.
///
/// Theory of operation. The stream subscribes to its channel as a callback of the loop. Each step sends the written
/// bytes, and receives while `acceptsBytes` is `true`. Received bytes are lent to the user where they lie. Bytes that the
/// user does not take stay in one chunk, and nothing more is received before they are taken. An idle stream holds no
/// chunk.
///
/// A stream belongs to its loop. It lives until `close`, also without a reference to it.
public final class ByteStream: LoopCallback, @unchecked Sendable {
  private struct State: ~Copyable {
    /// `nil` once the stream is closed: the descriptor is closed with the last reference to the channel.
    var channel: Channel?
    var layers: Layers
    var input = Chunk()
    var output = ByteQueue()
    /// The number of bytes to receive at once. Doubled each time a receive fills the buffer.
    var receiveBytes = ChunkPool.smallest
    var isSubscribed = false
    var isInStep = false
    var hasEnded = false
    var hasStoppedSending = false
    /// Whether bytes have been written since the last call of `outputDrained`.
    var owesDrained = false
    /// Whether the sending side is closed once the output is empty.
    var closesSending = false
    /// Whether TLS has announced the end of the output.
    var hasAnnouncedEnd = false
    var user: (any ByteStreamUser)?

    mutating func send(to channel: Channel, atMost limit: Int = .max) throws(TLSLayer.Failure) {
      _ = try layers.send(&output, to: channel, atMost: limit)
    }

    mutating func receive(from channel: Channel) throws(TLSLayer.Failure) -> ClientSocket.Received {
      try layers.receive(from: channel, into: &input)
    }
  }

  private static let receiveBytesMax = 64 * 1024

  public let loop: ClientLoop
  /// The address of the peer: of the proxy, if there is one.
  public let peer: SocketAddress
  private let loopBound: LoopBound<State>

  /// Creates a stream over a tunnel. `start` begins to receive.
  public init(over tunnel: Tunnel) {
    loop = tunnel.channel.loop
    peer = tunnel.channel.address
    loopBound = LoopBound(State(channel: tunnel.channel, layers: tunnel.handOver()))
    let received = tunnel.received
    if !received.isEmpty {
      var input = loop.takeChunk(atLeast: received.count)
      _ = input.append(received.span)
      swap(&input, &loopBound.state.input)
    }
    // The deadline and the cancellation of the exchange before do not concern the stream.
    tunnel.channel.start(exchange: .max, deadline: .never)
  }

  /// The number of bytes that have been written and not handed to TLS or to the kernel.
  public var unsentBytes: Int { loopBound.state.output.byteCount }

  /// Whether the kernel has taken everything, or takes nothing more. If not, `outputDrained` or `sendingFailed` follows.
  public var isDrained: Bool { isClosed || loopBound.state.hasStoppedSending || isAllSent }

  /// Whether the kernel takes no bytes for now, or more bytes wait than are received at once.
  public var isBlocked: Bool {
    guard let channel = loopBound.state.channel, unsentBytes > 0 else { return false }
    return !channel.isWritable || unsentBytes > Self.receiveBytesMax
  }

  private var isClosed: Bool { loopBound.state.channel == nil }

  /// Starts to receive for `user`, which the stream keeps until it is closed.
  public func start(for user: any ByteStreamUser) {
    loopBound.state.user = user
    step()
  }

  /// Sends bytes behind those that were written before. Bytes that the kernel does not take at once are kept.
  public func write(_ bytes: [UInt8]) {
    guard !isClosed, !loopBound.state.hasStoppedSending, !loopBound.state.closesSending else { return }
    loopBound.state.output.append(bytes)
    loopBound.state.owesDrained = true
    step()
  }

  /// Reads `acceptsBytes` again, and receives if it is `true`.
  public func resumeReceiving() { step() }

  /// Closes the sending side once all written bytes have been sent: `close_notify` with TLS, and the end of the TCP
  /// stream.
  public func closeSending() {
    loopBound.state.closesSending = true
    step()
  }

  /// Closes the connection. Written bytes leave if the kernel takes them at once.
  public func close() {
    guard let channel = loopBound.state.channel.take() else { return }
    if !loopBound.state.output.isEmpty, !loopBound.state.hasStoppedSending, channel.isWritable {
      try? loopBound.state.send(to: channel)
    }
    loopBound.state.output.removeAll()
    if !loopBound.state.isInStep { releaseInput() }
    loopBound.state.layers.close(over: channel, inOrder: true)
    channel.close()
    // Releasing the user may run other code: not during the access to the state.
    let user = loopBound.state.user.take()
    withExtendedLifetime(user) {}
  }

  /// Ends the stream and gives its connection away, with the bytes that have been received and not taken.
  ///
  /// - Parameter taken: Bytes that the user has taken and gives back. They come first.
  /// - Returns: The tunnel, or `nil` if the stream is closed or has unsent bytes.
  public func detach(behind taken: [UInt8] = []) -> Tunnel? {
    guard !loopBound.state.isInStep, loopBound.state.output.isEmpty, let channel = loopBound.state.channel.take() else {
      return nil
    }
    var received = taken
    loopBound.state.input.lend(0..<loopBound.state.input.count) { received.append(copying: $0) }
    releaseInput()
    loopBound.state.user = nil
    channel.unsubscribe()
    return Tunnel(channel: channel, layers: loopBound.state.layers.take(), received: received)
  }

  // MARK: - Steps

  public func perform() {
    loopBound.state.isSubscribed = false
    step()
  }

  /// Sends and receives as far as possible without waiting, and subscribes to the rest.
  private func step() {
    // A call from the user in a step: the running step repeats itself.
    guard !loopBound.state.isInStep, let channel = loopBound.state.channel, loopBound.state.user != nil else { return }
    loopBound.state.isInStep = true
    repeat {
      send(to: channel)
      receive(from: channel)
      // The user may have written while it received, or TLS received what it waited for.
      if !loopBound.state.output.isEmpty || loopBound.state.closesSending { send(to: channel) }
    } while !isClosed && !subscribe(to: channel)
    loopBound.state.isInStep = false
    if isClosed { releaseInput() }
  }

  private func fail(_ failure: TLSLayer.Failure) {
    let user = loopBound.state.user
    close()
    user?.failed(Self.transportError(failure))
  }

  private static func transportError(_ failure: TLSLayer.Failure) -> TransportError {
    switch failure {
    case .tls(let error): .tls(error)
    case .kernel(let error): .connectionLost(.receivingBody, error)
    }
  }

  /// - Returns: `false` if there is something to do at once.
  private func subscribe(to channel: Channel) -> Bool {
    let sending = loopBound.state.layers.sendingState
    // TLS can only receive what it waits for once the user has taken the bytes before it.
    let reading =
      !loopBound.state.hasEnded && (acceptsBytes || sending.waitsForInput && loopBound.state.input.count == 0)
    let writing =
      !loopBound.state.hasStoppedSending && !sending.waitsForInput
      && (!loopBound.state.output.isEmpty || sending.hasOutput)
    if loopBound.state.isSubscribed {
      channel.setInterest(reading: reading, writing: writing)
      return true
    }
    guard channel.isOpen else {
      fail(.kernel(.notConnected))
      return true
    }
    do throws(Channel.Interruption) {
      loopBound.state.isSubscribed = try channel.wait(reading: reading, writing: writing, with: self)
      return loopBound.state.isSubscribed
    } catch {
      fail(.kernel(.notConnected))
      return true
    }
  }

  private var acceptsBytes: Bool { loopBound.state.user?.acceptsBytes == true }

  // MARK: - Sending

  private func send(to channel: Channel) {
    guard !isClosed, !loopBound.state.hasStoppedSending else { return }
    if !loopBound.state.output.isEmpty || loopBound.state.layers.sendingState.hasOutput, channel.isWritable {
      do throws(TLSLayer.Failure) {
        try loopBound.state.send(to: channel, atMost: channel.sendingShare)
      } catch {
        loopBound.state.hasStoppedSending = true
        loopBound.state.output.removeAll()
        loopBound.state.layers.stopSending()
        loopBound.state.user?.sendingFailed(Self.transportError(error))
        return
      }
    }
    guard isAllSent else {
      // Also for TLS's own messages, because a write waits for them.
      loopBound.state.owesDrained = true
      return
    }
    if loopBound.state.owesDrained {
      loopBound.state.owesDrained = false
      loopBound.state.user?.outputDrained()
    }
    // While TLS waits for input, `close_notify` cannot leave.
    guard loopBound.state.closesSending, !isClosed, isAllSent, !loopBound.state.layers.sendingState.waitsForInput else {
      return
    }
    if !loopBound.state.hasAnnouncedEnd {
      loopBound.state.hasAnnouncedEnd = true
      loopBound.state.layers.endSending(to: channel)
      // The kernel may not have taken `close_notify` yet.
      guard isAllSent else {
        loopBound.state.owesDrained = true
        return
      }
    }
    loopBound.state.hasStoppedSending = true
    channel.closeSending()
  }

  /// Whether the kernel has taken everything, the bytes that TLS has encrypted included.
  private var isAllSent: Bool { loopBound.state.output.isEmpty && !loopBound.state.layers.sendingState.hasOutput }

  // MARK: - Receiving

  private func receive(from channel: Channel) {
    while !isClosed, !loopBound.state.hasEnded || loopBound.state.input.count > 0 {
      if loopBound.state.input.count > 0, acceptsBytes { lend() }
      guard !isClosed else { return }
      // The user does not take the remaining bytes now. The next call offers them first.
      if loopBound.state.input.count > 0 { return }
      guard !loopBound.state.hasEnded else { return reportEnd() }
      guard acceptsBytes || loopBound.state.layers.sendingState.waitsForInput else { break }
      guard channel.mayReceive || loopBound.state.layers.hasInput else { break }
      makeRoom()
      do throws(TLSLayer.Failure) {
        switch try loopBound.state.receive(from: channel) {
        case .bytes(_, let drained):
          if !drained { loopBound.state.receiveBytes = min(loopBound.state.receiveBytes * 2, Self.receiveBytesMax) }
        case .wouldBlock:
          releaseInput()
          return
        case .endOfStream:
          loopBound.state.hasEnded = true
          guard loopBound.state.input.count > 0 else { return reportEnd() }
        }
      } catch {
        return fail(error)
      }
    }
    if loopBound.state.input.count == 0 { releaseInput() }
  }

  private func reportEnd() {
    releaseInput()
    loopBound.state.user?.receivedEnd()
  }

  /// Lends the received bytes to the user.
  private func lend() {
    guard let user = loopBound.state.user else { return }
    var chunk = Chunk()
    swap(&chunk, &loopBound.state.input)
    let count = user.received(chunk.bytes)
    chunk.drop(count)
    swap(&chunk, &loopBound.state.input)
  }

  private func makeRoom() {
    guard loopBound.state.input.capacity < loopBound.state.receiveBytes else { return }
    var larger = loop.takeChunk(atLeast: loopBound.state.receiveBytes)
    swap(&loopBound.state.input, &larger)
    loop.recycle(larger)
  }

  private func releaseInput() {
    guard loopBound.state.input.capacity > 0 else { return }
    var empty = Chunk()
    swap(&loopBound.state.input, &empty)
    loop.recycle(empty)
  }
}
