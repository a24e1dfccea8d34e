import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// The receiver of a byte stream's events. All functions are called on the stream's loop, and may call the stream.
public protocol ByteStreamUser: AnyObject {
  /// Whether received bytes are wanted. While this is `false`, nothing is received, and TCP's flow control slows the
  /// peer down.
  var wantsBytes: Bool { get }
  /// Takes received bytes, until `wantsBytes` becomes `false`.
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
/// Theory of operation. The stream subscribes to its channel as a callback of the loop. Each step sends what has been
/// written, and receives while its user wants bytes. Received bytes are lent to the user where they lie; what the user
/// does not take stays in one chunk, and nothing more is received before it is taken. An idle stream holds no chunk.
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
    /// Whether the sending side is closed once the output is empty.
    var closesSending = false
    var user: (any ByteStreamUser)?
  }

  private static let receiveBytesMax = 64 * 1024

  public let loop: ClientLoop
  /// The address of the peer: of the proxy, if there is one.
  public let peer: SocketAddress
  private let own: LoopBound<State>

  /// Creates a stream over a tunnel. `start` begins to receive.
  public init(over tunnel: Tunnel) {
    loop = tunnel.channel.loop
    peer = tunnel.channel.address
    own = LoopBound(State(channel: tunnel.channel, layers: tunnel.handOver()))
    let received = tunnel.received
    if !received.isEmpty {
      var input = loop.takeChunk(atLeast: received.count)
      _ = input.append(received.span)
      swap(&input, &own.state.input)
    }
    // The deadline and the cancellation of the exchange before do not concern the stream.
    tunnel.channel.begin(exchange: .max, deadline: .never)
  }

  /// The number of bytes that have been written and not sent.
  public var unsentBytes: Int { own.state.output.byteCount }

  /// Whether the kernel takes no bytes for now, or more bytes wait than are received at once.
  public var isBlocked: Bool {
    guard let channel = own.state.channel, unsentBytes > 0 else { return false }
    return !channel.isWritable || unsentBytes > Self.receiveBytesMax
  }

  private var isClosed: Bool { own.state.channel == nil }

  /// Begins to receive for `user`, which the stream keeps until it is closed.
  public func start(for user: any ByteStreamUser) {
    own.state.user = user
    step()
  }

  /// Sends bytes behind those that were written before. Bytes that the kernel does not take at once are kept.
  public func write(_ bytes: [UInt8]) {
    guard !isClosed, !own.state.hasStoppedSending, !own.state.closesSending else { return }
    own.state.output.append(bytes)
    step()
  }

  /// Looks again whether the user wants bytes.
  public func resumeReceiving() { step() }

  /// Closes the sending side once all written bytes have been sent: `close_notify` with TLS, and the end of the TCP
  /// stream.
  public func closeSending() {
    own.state.closesSending = true
    step()
  }

  /// Closes the connection. Written bytes leave if the kernel takes them at once.
  public func close() {
    guard let channel = own.state.channel.take() else { return }
    if !own.state.output.isEmpty, !own.state.hasStoppedSending, channel.isWritable {
      _ = try? own.state.layers.send(&own.state.output, to: channel)
    }
    own.state.output.removeAll()
    if !own.state.isInStep { releaseInput() }
    own.state.layers.close(over: channel, inOrder: true)
    channel.close()
    // Releasing the user may run other code: not during the access to the state.
    let user = own.state.user.take()
    withExtendedLifetime(user) {}
  }

  /// Ends the stream and gives its connection away, with the bytes that have been received and not taken.
  ///
  /// - Returns: The tunnel, or `nil` if the stream is closed or has unsent bytes.
  public func detach() -> Tunnel? {
    guard !own.state.isInStep, own.state.output.isEmpty, let channel = own.state.channel.take() else { return nil }
    var received: [UInt8] = []
    own.state.input.lend(0..<own.state.input.count) { received.append(copying: $0) }
    releaseInput()
    own.state.user = nil
    channel.unsubscribe()
    return Tunnel(channel: channel, layers: own.state.layers.take(), received: received)
  }

  // MARK: - Steps

  public func perform() {
    own.state.isSubscribed = false
    step()
  }

  /// Sends and receives as far as possible without waiting, and subscribes to the rest.
  private func step() {
    // A call from the user in a step: the running step looks again.
    guard !own.state.isInStep, let channel = own.state.channel, own.state.user != nil else { return }
    own.state.isInStep = true
    repeat {
      send(to: channel)
      receive(from: channel)
      // The user may have written while it received.
      if !own.state.output.isEmpty { send(to: channel) }
    } while !isClosed && !subscribe(to: channel)
    own.state.isInStep = false
    if isClosed { releaseInput() }
  }

  private func fail(_ failure: TLSLayer.Failure) {
    let user = own.state.user
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
    let sending = own.state.layers.sendingState
    let reading = !own.state.hasEnded && (wantsBytes || sending.waitsForInput)
    let writing =
      !own.state.hasStoppedSending && !sending.waitsForInput && (!own.state.output.isEmpty || sending.hasOutput)
    if own.state.isSubscribed {
      channel.want(reading: reading, writing: writing)
      return true
    }
    guard channel.isOpen else {
      fail(.kernel(.notConnected))
      return true
    }
    do throws(Channel.Interruption) {
      own.state.isSubscribed = try channel.wait(reading: reading, writing: writing, with: self)
      return own.state.isSubscribed
    } catch {
      fail(.kernel(.notConnected))
      return true
    }
  }

  private var wantsBytes: Bool { own.state.user?.wantsBytes == true }

  // MARK: - Sending

  private func send(to channel: Channel) {
    guard !isClosed, !own.state.hasStoppedSending else { return }
    let hadOutput = !own.state.output.isEmpty
    if hadOutput || own.state.layers.sendingState.hasOutput, channel.isWritable {
      do throws(TLSLayer.Failure) {
        _ = try own.state.layers.send(&own.state.output, to: channel)
      } catch {
        own.state.hasStoppedSending = true
        own.state.output.removeAll()
        own.state.layers.stopSending()
        own.state.user?.sendingFailed(Self.transportError(error))
        return
      }
    }
    guard own.state.output.isEmpty else { return }
    if hadOutput { own.state.user?.outputDrained() }
    if own.state.closesSending, own.state.output.isEmpty, !isClosed {
      own.state.hasStoppedSending = true
      own.state.layers.endSending(to: channel)
      channel.closeSending()
    }
  }

  // MARK: - Receiving

  private func receive(from channel: Channel) {
    while !isClosed, !own.state.hasEnded || own.state.input.count > 0 {
      if own.state.input.count > 0, wantsBytes { lend() }
      guard !isClosed else { return }
      // What is left is what the user does not want now, and is offered first.
      if own.state.input.count > 0 { return }
      guard !own.state.hasEnded else { return reportEnd() }
      guard wantsBytes || own.state.layers.sendingState.waitsForInput else { break }
      guard channel.mayReceive || own.state.layers.hasInput else { break }
      makeRoom()
      do throws(TLSLayer.Failure) {
        switch try own.state.layers.receive(from: channel, into: &own.state.input) {
        case .bytes(_, let drained):
          if !drained { own.state.receiveBytes = min(own.state.receiveBytes * 2, Self.receiveBytesMax) }
        case .wouldBlock:
          releaseInput()
          return
        case .endOfStream:
          own.state.hasEnded = true
          guard own.state.input.count > 0 else { return reportEnd() }
        }
      } catch {
        return fail(error)
      }
    }
    if own.state.input.count == 0 { releaseInput() }
  }

  private func reportEnd() {
    releaseInput()
    own.state.user?.receivedEnd()
  }

  /// Lends the received bytes to the user.
  private func lend() {
    guard let user = own.state.user else { return }
    var chunk = Chunk()
    swap(&chunk, &own.state.input)
    let count = user.received(chunk.bytes)
    chunk.drop(count)
    swap(&chunk, &own.state.input)
  }

  private func makeRoom() {
    guard own.state.input.capacity < own.state.receiveBytes else { return }
    var larger = loop.takeChunk(atLeast: own.state.receiveBytes)
    swap(&own.state.input, &larger)
    loop.recycle(larger)
  }

  private func releaseInput() {
    guard own.state.input.capacity > 0 else { return }
    var empty = Chunk()
    swap(&own.state.input, &empty)
    loop.recycle(empty)
  }
}
