import Foundation
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

@testable import Larkspur

/// The streams of a captured connection over a scripted kernel: how they end.
@Suite(.ownThread) struct CapturedStreamsTests {
  let world: ScriptedWorld
  let input: InputStream
  let output: OutputStream
  var peer: ScriptedPeer { world.kernel.peer() }

  init() throws {
    world = try ScriptedWorld()
    (input, output) = CapturedStreams(over: try world.openTunnel()).makeStreams()
    input.open()
    output.open()
  }

  private func read() -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 100)
    let count = input.read(&bytes, maxLength: bytes.count)
    return count < 0 ? nil : Array(bytes[..<count])
  }

  private func code(_ error: (any Error)?) -> URLError.Code? { (error as? URLError)?.code }

  /// A lost connection is no end of the stream: it is the error of both streams, behind the bytes that came before.
  @Test(arguments: [true, false]) func aLoss(isMetByASend: Bool) {
    peer.send([1, 2, 3])
    if isMetByASend {
      peer.willFailToSend(.connectionReset, .brokenPipe)
      #expect(output.write([9], maxLength: 1) == 1)
      peer.close()
    } else {
      peer.reset()
    }
    world.settle()
    #expect(input.streamStatus == .open)
    #expect(read() == [1, 2, 3])
    world.settle()
    #expect(read() == nil)
    #expect(input.streamStatus == .error && code(input.streamError) == .networkConnectionLost)
    #expect(output.write([9], maxLength: 1) == -1)
    #expect(output.streamStatus == .error && code(output.streamError) == .networkConnectionLost)
    #expect(world.leftovers == [])
  }

  @Test func anOrderlyEnd() {
    peer.send([1])
    peer.close()
    world.settle()
    #expect(read() == [1] && read() == [])
    #expect(input.streamStatus == .atEnd && input.streamError == nil)
    #expect(output.write([9], maxLength: 1) == 1)
    input.close()
    output.close()
    world.settle()
    #expect(peer.received == [9])
    #expect(world.leftovers == [])
  }
}
